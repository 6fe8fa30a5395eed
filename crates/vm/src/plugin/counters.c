/*
 * Counters in a file that is mapped shared, which translated code increments.
 *
 * Each virtual CPU has an array of counters in the file. API version 1 adds to a word in memory:
 * with `-accel tcg,thread=single` all CPUs share the first array. Later versions add to the
 * CPU's entry in a scoreboard, which is QEMU's own memory: the file is mapped over it, so that a
 * reader still sees the counters without stopping the guest and without a protocol.
 */
#define SLOTS (1u << 18)
#define PAGE 4096u
#define MAX_CPUS 16 /* entries that QEMU allocates before it moves scoreboards */

/* Counters that belong to no slot; those of the slots follow. */
enum { BLOCKS, USER, OVERFLOW, OWN = 8 };

/* Bytes of an array, in whole pages. */
#define COUNTERS ((((OWN + SLOTS) * 8ull) + PAGE - 1) / PAGE * PAGE)

static uint64_t *counters[MAX_CPUS];
static unsigned int cpus = 1; /* arrays in use */
static struct qemu_plugin_scoreboard *board;
static size_t board_offset; /* of the first whole page of an entry */
static int counters_fd = -1;
static off_t counters_at;

/* Opens a file and extends it to at least `size` bytes; -1 on failure. */
static int opened(const char *path, off_t size)
{
    int fd = open(path, O_RDWR);
    off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (end < 0 || (end < size && ftruncate(fd, size))) {
        if (fd >= 0) close(fd);
        return -1;
    }
    return fd;
}

/* Maps the first bytes of a file; NULL on failure. */
static void *mapped(const char *path, size_t size)
{
    int fd = opened(path, size);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    return map == MAP_FAILED ? NULL : map;
}

static void cpu_begins(uintptr_t first, uintptr_t second)
{
    unsigned int cpu = argument(first, second);
    if (cpu >= cpus) {
        fprintf(stderr, "fwdlab: CPU %u has no counters\n", cpu);
        abort();
    }
    uintptr_t entry = (uintptr_t)qemu_plugin_scoreboard_find(board, cpu);
    board_offset = -entry % PAGE;
    uint64_t *array = mmap((void *)(entry + board_offset), COUNTERS, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, counters_fd, counters_at + cpu * COUNTERS);
    if (array == MAP_FAILED) {
        perror("fwdlab: the counters can't be mapped");
        abort();
    }
    counters[cpu] = array;
}

/* Creates the arrays of `wanted` CPUs in the file at `path`, from byte `at` on. */
static bool make_counters(qemu_plugin_id_t id, const char *path, size_t at, unsigned int wanted)
{
    bool is_first_version = qemu_plugin_register_vcpu_tb_exec_inline;
    cpus = is_first_version ? 1 : wanted;
    counters_at = at;
    counters_fd = cpus > MAX_CPUS ? -1 : opened(path, at + cpus * COUNTERS);
    if (counters_fd < 0) return false;
    if (is_first_version) {
        void *map = mmap(NULL, COUNTERS, PROT_READ | PROT_WRITE, MAP_SHARED, counters_fd, at);
        counters[0] = map == MAP_FAILED ? NULL : map;
        return counters[0];
    }
    if (!qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu || !qemu_plugin_scoreboard_new) return false;
    board = qemu_plugin_scoreboard_new(COUNTERS + PAGE);
    qemu_plugin_register_vcpu_init_cb(id, cpu_begins, NULL);
    return board;
}

/* Returns a CPU's counter. */
static uint64_t *counter(unsigned int cpu, uint32_t number)
{
    return &counters[board ? cpu : 0][number];
}

/* Returns the sum of a counter over all CPUs. */
static uint64_t sum(uint32_t number)
{
    uint64_t sum = 0;
    for (unsigned int cpu = 0; cpu < cpus; cpu++)
        if (counters[cpu]) sum += counters[cpu][number];
    return sum;
}

static qemu_plugin_u64 word(uint32_t number)
{
    return (qemu_plugin_u64){ board, board_offset + 8 * (size_t)number };
}

/* Adds to a counter whenever the block begins. */
static void add_per_block(struct qemu_plugin_tb *tb, uint32_t number, uint64_t n)
{
    if (board) qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, word(number), n);
    else qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, counter(0, number), n);
}

/* Adds one to a counter whenever the instruction is executed. */
static void add_per_instruction(struct qemu_plugin_insn *insn, uint32_t number)
{
    if (board) qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, word(number), 1);
    else qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter(0, number), 1);
}
