/*
 * Counts the instructions that a guest executes, exactly: a QEMU TCG plugin.
 *
 * Each translated block of kernel code has a slot in a file that is mapped shared:
 * its address, its instructions, and how often it was executed. Whoever wants
 * counts reads the file before and after; the guest is not stopped, no protocol
 * is needed. Kernel code is what lies at or above `kernel=ADDRESS`; everything
 * else, whose addresses mean nothing, goes to one slot.
 *
 * A repeated string instruction (rep movs, rep stos ...) is one instruction,
 * however long it runs; QEMU executes it as one block an iteration, and a last one
 * that finds nothing left. Its slot counts how often it was begun, and its iterations
 * apart, as bytes.
 *
 * An instruction that lies across the end of a page ends the block before it: QEMU
 * takes it out of the block again, but up to 8.1 not out of what plugins are shown. So
 * an instruction that may be such a one has a slot of its own, which is added to when
 * it is executed, and it is executed only where it stayed in.
 *
 * Inline additions are not atomic: with more than one virtual CPU, QEMU needs
 * `-accel tcg,thread=single`.
 *
 * The gate: while the word `hold` of the header isn't 0, the virtual CPU waits at
 * the block that begins at `gate`. That is where a batch of frames is gathered, so
 * that the guest finds them all at once however fast either side is.
 *
 * Compiled behind plugin.h, calls.c, caches.c and misses.c, as one file.
 */
#define MAGIC 0x31544e554f435746ull /* "FWCOUNT1" */
#define SLOTS (1u << 18)

/* A block, or a repeated instruction. */
struct slot {
    uint64_t address;      /* 0: free */
    uint32_t instructions; /* of one execution */
    uint32_t atomics;      /* those with a lock prefix, or xchg with memory */
    uint64_t executions;
    uint64_t bytes;        /* moved by a repeated instruction */
};

struct header {
    uint64_t magic;
    uint64_t slots;
    uint64_t overflow;      /* instructions of blocks that found no slot */
    uint64_t user;          /* instructions outside of the kernel */
    uint64_t blocks;        /* blocks executed */
    uint64_t gate;          /* address of the gate; 0: none */
    volatile uint64_t hold; /* not 0: wait at the gate */
    volatile uint64_t held; /* how often somebody waited there */
    uint64_t reserved[56];
};

static struct header *head;
static struct slot *slots;
static uint64_t kernel = 0xffff800000000000ull;

/* The last iteration of a repeated instruction, and the block it was in. */
static struct slot *last_repeated;
static uint64_t last_block;

static struct slot *find(uint64_t address, uint32_t instructions, uint32_t atomics)
{
    uint64_t hash = (address * 0x9e3779b97f4a7c15ull) ^ ((uint64_t)instructions << 40);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[((hash >> 24) + i) % SLOTS];
        if (slot->address == 0) {
            slot->instructions = instructions;
            slot->atomics = atomics;
            slot->address = address;
            return slot;
        }
        if (slot->address == address && slot->instructions == instructions && slot->atomics == atomics)
            return slot;
    }
    return NULL;
}

/* Bytes that one iteration of a repeated string instruction moves; -1 for any other. */
static int repeated(const uint8_t *code, size_t size)
{
    bool rep = false, wide = false, narrow = false;
    size_t i = 0;
    for (; i < size; i++) {
        uint8_t b = code[i];
        if (b == 0xf2 || b == 0xf3) rep = true;
        else if (b == 0x66) narrow = true;
        else if (b == 0x2e || b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65 || b == 0x67 || b == 0xf0) ;
        else break;
    }
    if (i < size && (code[i] & 0xf0) == 0x40) wide = code[i++] & 8;
    if (!rep || i >= size) return -1;
    switch (code[i]) {
    case 0x6c: case 0x6e: case 0xa4: case 0xaa: case 0xac:
        return 1;
    case 0x6d: case 0x6f: case 0xa5: case 0xab: case 0xad:
        return wide ? 8 : narrow ? 2 : 4;
    case 0xa6: case 0xa7: case 0xae: case 0xaf: /* compare and scan move nothing */
        return 0;
    }
    return -1;
}

static bool atomic(const uint8_t *code, size_t size)
{
    size_t i = 0;
    for (; i < size; i++) {
        uint8_t b = code[i];
        if (b == 0xf0) return true;
        if (!(b == 0x66 || b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x36 || b == 0x3e || b == 0x26 ||
              b == 0x64 || b == 0x65 || b == 0x67)) break;
    }
    if (i < size && (code[i] & 0xf0) == 0x40) i++;
    /* xchg with memory locks without a prefix. */
    return i + 1 < size && (code[i] == 0x86 || code[i] == 0x87) && code[i + 1] < 0xc0;
}

static void iteration(unsigned int cpu, void *data)
{
    struct slot *slot = data;
    (void)cpu;
    bool goes_on = slot == last_repeated && head->blocks == last_block + 1;
    if (goes_on) slot->bytes += slot->atomics & 0x7fffffffu;
    else {
        slot->executions++;
        book(slot->address, 1);
    }
    last_repeated = slot;
    last_block = head->blocks;
}

static qemu_plugin_id_t own_id;
static void again(qemu_plugin_id_t);

/* What is translated from now on is watched, or is not, and that is everything. */
static void watch_from_now_on(bool wanted)
{
    if (is_watching == wanted) return;
    is_watching = wanted;
    qemu_plugin_reset(own_id, again);
}

static void watch_no_more(void)
{
    watch_from_now_on(false);
}

static void gate(unsigned int cpu, void *data)
{
    (void)cpu;
    (void)data;
    if (caches && caches->on) watch_from_now_on(true);
    if (!head->hold) return;
    head->held++;
    while (head->hold) usleep(20);
}

/*
 * The gate is looked for when code is translated. Where its code was translated before the
 * gate was set, all code is translated anew.
 */
static uint64_t known_gate;

static void look_for_gate(qemu_plugin_id_t id)
{
    if (head->gate == known_gate) return;
    known_gate = head->gate;
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (slots[i].address == known_gate) {
            qemu_plugin_reset(id, again);
            return;
        }
    }
}

/*
 * Until there is a gate nobody asks what is executed, and code that no plugin looks at is
 * translated in half the time. So a boot is left alone, but for a glance whenever the CPU
 * has nothing to do: then all code is translated anew.
 */
static void look_while_idle(qemu_plugin_id_t id, unsigned int cpu)
{
    (void)cpu;
    if (head->gate == known_gate) return;
    known_gate = head->gate;
    qemu_plugin_reset(id, again);
}

/* True where QEMU may have taken the instruction out of its block again. */
static bool may_be_gone(const struct qemu_plugin_insn *insn, size_t n, size_t i)
{
    return n > 1 && i == n - 1 && (qemu_plugin_insn_vaddr(insn) & 0xfff) + qemu_plugin_insn_size(insn) >= 0x1000;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    look_for_gate(id);
    size_t n = qemu_plugin_tb_n_insns(tb);
    uint64_t address = qemu_plugin_tb_vaddr(tb);
    bool is_kernel = address >= kernel;
    uint32_t counted = 0, atomics = 0;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &head->blocks, 1);
    if (!is_kernel && calls)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, program_goes_on, QEMU_PLUGIN_CB_NO_REGS, NULL);
    if (is_kernel && address == head->gate)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, gate, QEMU_PLUGIN_CB_NO_REGS, NULL);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const uint8_t *code = qemu_plugin_insn_data(insn);
        size_t size = qemu_plugin_insn_size(insn);
        int width = is_kernel ? repeated(code, size) : -1;
        if (width >= 0) {
            struct slot *slot = find(qemu_plugin_insn_vaddr(insn), 1, (uint32_t)width | 0x80000000u);
            if (slot) {
                qemu_plugin_register_vcpu_insn_exec_cb(insn, iteration, QEMU_PLUGIN_CB_NO_REGS, slot);
                continue;
            }
        }
        if (may_be_gone(insn, n, i)) {
            struct slot *slot = is_kernel ? find(qemu_plugin_insn_vaddr(insn), 1, atomic(code, size)) : NULL;
            void *counter = slot ? (void *)&slot->executions : is_kernel ? &head->overflow : &head->user;
            qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
            if (slot && calls)
                qemu_plugin_register_vcpu_insn_exec_cb(insn, one_alone, QEMU_PLUGIN_CB_NO_REGS, (void *)slot->address);
            continue;
        }
        counted++;
        atomics += atomic(code, size);
    }
    if (is_kernel && calls && n > 0) watch(tb, counted);
    if (is_kernel && is_watching && n > 0) watch_lines(tb);
    if (counted == 0) return;
    struct slot *slot = is_kernel ? find(address, counted, atomics) : NULL;
    if (slot)
        qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &slot->executions, 1);
    else
        qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, is_kernel ? &head->overflow : &head->user, counted);
}

static void again(qemu_plugin_id_t id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    const char *path = NULL, *tree = NULL, *lines = NULL;
    bool from_gate = false;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "counts=", 7)) path = argv[i] + 7;
        if (!strncmp(argv[i], "calls=", 6)) tree = argv[i] + 6;
        if (!strncmp(argv[i], "caches=", 7)) lines = argv[i] + 7;
        if (!strcmp(argv[i], "from=gate")) from_gate = true;
        if (!strncmp(argv[i], "kernel=", 7)) kernel = strtoull(argv[i] + 7, NULL, 0);
    }
    void *map = path ? mapped(path, sizeof(struct header) + SLOTS * sizeof(struct slot)) : NULL;
    if (!map || (tree && !follow_calls(tree, &((struct header *)map)->user)) || (lines && !model_caches(lines))) {
        fprintf(stderr, "fwdlab: the file of the counts can't be mapped\n");
        return -1;
    }
    head = map;
    slots = (struct slot *)(head + 1);
    head->slots = SLOTS;
    head->magic = MAGIC;
    own_id = id;
    if (from_gate) qemu_plugin_register_vcpu_idle_cb(id, look_while_idle);
    else again(id);
    return 0;
}
