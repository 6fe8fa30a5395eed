/*
 * Feeds the caches of caches.c: each block's lines when it begins, and each access to memory.
 */
static struct caches *caches;
static struct place *places;
static struct cache code_cache, data_cache, last_cache;
static bool is_watching; /* code is translated with the callbacks below */

/* A block of kernel code, from its first line to its last. */
struct fetched {
    struct place *place;
    uint64_t first, last;
};

static struct place *place_of(uint64_t address)
{
    uint64_t hash = address * 0x9e3779b97f4a7c15ull;
    for (uint32_t i = 0; i < 1024; i++) {
        struct place *place = &places[((hash >> 40) + i) % PLACES];
        if (place->address == 0) place->address = address;
        if (place->address == address) return place;
    }
    caches->overflow++;
    return NULL;
}

static void watch_no_more(void);

static void fetched(unsigned int cpu, void *data)
{
    const struct fetched *block = data;
    (void)cpu;
    if (!caches->on) {
        watch_no_more();
        return;
    }
    for (uint64_t line = block->first; line <= block->last; line++) {
        if (use(&code_cache, line)) continue;
        block->place->code++;
        if (!use(&last_cache, line)) block->place->last++;
    }
}

static void touched(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    struct place *place = data;
    uint64_t last = (address + (1ull << qemu_plugin_mem_size_shift(info)) - 1) >> LINE;
    (void)cpu;
    place->references++;
    for (uint64_t line = address >> LINE; line <= last; line++) {
        if (use(&data_cache, line)) continue;
        place->data++;
        if (!use(&last_cache, line)) place->last++;
    }
}

/* Watches a block of kernel code. */
static void watch_lines(struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    struct place *place = place_of(qemu_plugin_tb_vaddr(tb));
    struct fetched *block = place ? malloc(sizeof *block) : NULL;
    if (!block) return;
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, n - 1);
    uint64_t end = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
    *block = (struct fetched){ place, qemu_plugin_tb_vaddr(tb) >> LINE, (end - 1) >> LINE };
    qemu_plugin_register_vcpu_tb_exec_cb(tb, fetched, QEMU_PLUGIN_CB_NO_REGS, block);
    for (size_t i = 0; i < n; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), touched, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, place);
}

/* Models caches with the shapes in the file at `path`, as soon as its `on` is set. */
static bool model_caches(const char *path)
{
    caches = mapped(path, sizeof(struct caches) + PLACES * sizeof(struct place));
    if (!caches) return false;
    places = (struct place *)(caches + 1);
    bool made = make_cache(&code_cache, &caches->code) && make_cache(&data_cache, &caches->data) &&
        make_cache(&last_cache, &caches->last);
    caches->places = PLACES;
    if (made) caches->magic = CACHES_MAGIC;
    return made;
}
