/*
 * Counts the instructions that a guest executes, exactly: a QEMU TCG plugin.
 *
 * Each translated block of kernel code has a slot in a file that is mapped shared: its address
 * and its instructions. A counter of the same number (counters.c) contains the number of
 * executions. A reader compares two readings of the file; the guest is not stopped. Kernel code
 * is at or above `kernel=ADDRESS`; everything else goes to one counter.
 *
 * A repeated string instruction (rep movs, rep stos ...) is one instruction, however long it
 * runs. QEMU may execute it as one block per iteration, plus a last one that finds nothing left;
 * its counter is the number of times it was started. The bytes that it moves are counted
 * separately.
 *
 * An instruction across the end of a page ends the block before it: QEMU removes it from the
 * block again, but up to 8.1 not from the block shown to plugins. So an instruction that may be
 * affected has its own slot, which is incremented when the instruction is executed.
 *
 * With more than one virtual CPU, QEMU needs `-accel tcg,thread=single`.
 *
 * The gate: while the word `hold` of the header isn't 0, the virtual CPU waits at the block that
 * begins at `gate`. A batch of frames is gathered there, so that the guest finds all of them
 * together, however fast either side is.
 *
 * Compiled after qemu.h, counters.c, calls.c, caches.c and misses.c, as one file.
 */
#define MAGIC 0x32544e554f435746ull /* "FWCOUNT2" */

/* A block, or a repeated instruction. */
struct slot {
    uint64_t address;      /* 0: free */
    uint32_t instructions; /* of one execution */
    uint32_t atomics;      /* those with a lock prefix, or xchg with memory */
    uint64_t bytes;        /* moved by a repeated instruction */
};

struct header {
    uint64_t magic;
    uint64_t slots;
    uint64_t cpus;          /* arrays of counters behind the slots */
    uint64_t gate;          /* address of the gate; 0: none */
    volatile uint64_t hold; /* not 0: wait at the gate */
    volatile uint64_t held; /* how often a CPU waited there */
    uint64_t reserved[58];
};

/* Bytes before the counters, in whole pages. */
#define COUNTERS_AT ((sizeof(struct header) + SLOTS * sizeof(struct slot) + PAGE - 1) / PAGE * PAGE)

static struct header *head;
static struct slot *slots;
static uint64_t kernel = 0xffff800000000000ull;

/* Each CPU's last iteration of a repeated instruction, and its block. */
static struct {
    struct slot *slot;
    uint64_t block;
} repeats[MAX_CPUS];

/* Number of the counter of a slot. */
static uint32_t executions(const struct slot *slot)
{
    return OWN + (uint32_t)(slot - slots);
}

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

/* In place of a slot's atomics: a repeated instruction, and one that only reads. */
#define REPEATED 0x80000000u
#define READS 1u
/* It compares or scans: nothing is moved. */
#define MOVES_NOTHING 2u

/* Returns the marks of a repeated string instruction; 0 for any other. */
static uint32_t repeated(const uint8_t *code, size_t size)
{
    bool rep = false;
    size_t i = 0;
    for (; i < size; i++) {
        uint8_t b = code[i];
        if (b == 0xf2 || b == 0xf3) rep = true;
        else if (!(b == 0x66 || b == 0x2e || b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65 ||
                   b == 0x67 || b == 0xf0)) break;
    }
    if (i < size && (code[i] & 0xf0) == 0x40) i++;
    if (!rep || i >= size) return 0;
    switch (code[i]) {
    case 0x6c: case 0x6d: case 0xa4: case 0xa5: case 0xaa: case 0xab: /* ins, movs, stos */
        return REPEATED;
    case 0x6e: case 0x6f: case 0xac: case 0xad: /* outs, lods */
        return REPEATED | READS;
    case 0xa6: case 0xa7: case 0xae: case 0xaf: /* cmps, scas */
        return REPEATED | MOVES_NOTHING;
    }
    return 0;
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
    uint64_t block = *counter(cpu, BLOCKS);
    bool goes_on = slot == repeats[cpu % MAX_CPUS].slot && block == repeats[cpu % MAX_CPUS].block + 1;
    if (!goes_on) {
        ++*counter(cpu, executions(slot));
        book(slot->address, 1);
    }
    repeats[cpu % MAX_CPUS].slot = slot;
    repeats[cpu % MAX_CPUS].block = block;
}

/* An access of a repeated instruction: reads count if nothing is written. */
static void moved(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    struct slot *slot = data;
    (void)cpu;
    (void)address;
    if (qemu_plugin_mem_is_store(info) == !(slot->atomics & READS))
        slot->bytes += 1ull << qemu_plugin_mem_size_shift(info);
}

static qemu_plugin_id_t own_id;
static void begin(qemu_plugin_id_t);

/* Discards all translations: code is translated again when it is executed. */
static void translate_again(void)
{
    qemu_plugin_reset(own_id, begin, (void *)own_id);
}

/* Starts or stops watching code: discards all translations if the state changes. */
static void watch_from_now_on(bool wanted)
{
    if (is_watching == wanted) return;
    is_watching = wanted;
    translate_again();
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
 * Looks for the gate when code is translated. If the code at the gate was translated before the
 * gate was set, all code is translated again.
 */
static uint64_t known_gate;

static void look_for_gate(void)
{
    if (head->gate == known_gate) return;
    known_gate = head->gate;
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (slots[i].address == known_gate) {
            translate_again();
            return;
        }
    }
}

/*
 * No counts are needed before the gate is set, and translation without instrumentation takes
 * half the time. So the boot is not instrumented: the plugin checks for the gate when the CPU
 * idles, and all code is translated again once it is set.
 */
static void look_while_idle(uintptr_t first, uintptr_t second)
{
    (void)first;
    (void)second;
    if (head->gate == known_gate) return;
    known_gate = head->gate;
    translate_again();
}

/* True if QEMU may have removed the instruction from its block again. */
static bool may_be_gone(const struct qemu_plugin_insn *insn, size_t n, size_t i)
{
    return n > 1 && i == n - 1 && (qemu_plugin_insn_vaddr(insn) & 0xfff) + qemu_plugin_insn_size(insn) >= 0x1000;
}

/* Counts an instruction by itself, in its own slot. */
static void count_alone(struct qemu_plugin_insn *insn, bool is_kernel, bool is_atomic)
{
    struct slot *slot = is_kernel ? find(qemu_plugin_insn_vaddr(insn), 1, is_atomic) : NULL;
    add_per_instruction(insn, slot ? executions(slot) : is_kernel ? OVERFLOW : USER);
    if (slot && calls)
        qemu_plugin_register_vcpu_insn_exec_cb(insn, one_alone, QEMU_PLUGIN_CB_NO_REGS, (void *)slot->address);
}

/* Counts a repeated instruction; false if there is no slot for it. */
static bool count_repeated(struct qemu_plugin_insn *insn, uint32_t marks)
{
    struct slot *slot = find(qemu_plugin_insn_vaddr(insn), 1, marks);
    if (!slot) return false;
    qemu_plugin_register_vcpu_insn_exec_cb(insn, iteration, QEMU_PLUGIN_CB_NO_REGS, slot);
    /* QEMU 7.2 confuses reads with writes if only one kind is requested. */
    if (!(marks & MOVES_NOTHING))
        qemu_plugin_register_vcpu_mem_cb(insn, moved, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, slot);
    return true;
}

static void translated(uintptr_t first, uintptr_t second)
{
    struct qemu_plugin_tb *tb = (struct qemu_plugin_tb *)argument(first, second);
    look_for_gate();
    size_t n = qemu_plugin_tb_n_insns(tb);
    uint64_t address = qemu_plugin_tb_vaddr(tb);
    bool is_kernel = address >= kernel;
    uint32_t counted = 0, atomics = 0;
    add_per_block(tb, BLOCKS, 1);
    if (!is_kernel && calls)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, program_goes_on, QEMU_PLUGIN_CB_NO_REGS, NULL);
    if (is_kernel && address == head->gate)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, gate, QEMU_PLUGIN_CB_NO_REGS, NULL);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t code[LONGEST];
        size_t size = code_of(insn, code);
        uint32_t marks = is_kernel ? repeated(code, size) : 0;
        if (marks && count_repeated(insn, marks)) continue;
        if (may_be_gone(insn, n, i)) {
            count_alone(insn, is_kernel, atomic(code, size));
            continue;
        }
        counted++;
        atomics += atomic(code, size);
    }
    if (is_kernel && calls && n > 0) watch(tb, counted);
    if (is_kernel && is_watching && n > 0) watch_lines(tb);
    if (counted == 0) return;
    struct slot *slot = is_kernel ? find(address, counted, atomics) : NULL;
    if (slot) add_per_block(tb, executions(slot), 1);
    else add_per_block(tb, is_kernel ? OVERFLOW : USER, counted);
}

static void begin(qemu_plugin_id_t id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated, NULL);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    const char *path = NULL, *tree = NULL, *lines = NULL;
    bool from_gate = false;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "counts=", 7)) path = argv[i] + 7;
        if (!strncmp(argv[i], "calls=", 6)) tree = argv[i] + 6;
        if (!strncmp(argv[i], "caches=", 7)) lines = argv[i] + 7;
        if (!strcmp(argv[i], "from=gate")) from_gate = true;
        if (!strncmp(argv[i], "kernel=", 7)) kernel = strtoull(argv[i] + 7, NULL, 0);
    }
    if (!path) { /* fwdlab only tests whether QEMU loads the plugin. */
        fprintf(stderr, "fwdlab: API %d of %d to %d\n", qemu_plugin_version, info->version.min, info->version.cur);
        return -1;
    }
    void *map = mapped(path, COUNTERS_AT);
    unsigned int wanted = info->system_emulation && info->system.smp_vcpus > 0 ? info->system.smp_vcpus : 1;
    if (!map || !make_counters(id, path, COUNTERS_AT, wanted) || (tree && !follow_calls(tree)) ||
        (lines && !model_caches(lines))) {
        fprintf(stderr, "fwdlab: the counters of %u CPUs can't be mapped, or are not to be had of this QEMU\n", wanted);
        return -1;
    }
    head = map;
    slots = (struct slot *)(head + 1);
    head->slots = SLOTS;
    head->cpus = cpus;
    head->magic = MAGIC;
    own_id = id;
    if (from_gate) qemu_plugin_register_vcpu_idle_cb(id, look_while_idle, NULL);
    else begin(id);
    return 0;
}
