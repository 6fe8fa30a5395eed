/*
 * QEMU's plugin interface (docs/devel/tcg-plugins.rst of QEMU) for every version of its API so
 * far, 1 (QEMU 7) to 7 (QEMU 11.1). Declared here because distributions ship no header.
 *
 * One object serves all of them:
 *
 * - QEMU refuses an object whose qemu_plugin_version it does not know. fwdlab finds an accepted
 *   number by trying and passes it in the environment; a constructor sets it before QEMU reads
 *   it.
 * - Functions that only some versions export are weak: NULL if the running QEMU lacks them.
 * - If a version has changed a signature, the function is declared with the longest list of
 *   arguments. A callee that takes fewer ignores the rest (System V ABI of x86-64, AAPCS64).
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WEAK __attribute__((weak))
#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
typedef void (*exec_cb)(unsigned int, void *);

/* The beginning of struct qemu_info_t, the same in all versions. */
typedef struct qemu_info_t {
    const char *target_name;
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus;
        int max_vcpus;
    } system;
} qemu_info_t;

enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
typedef uint32_t qemu_plugin_meminfo_t;
typedef void (*mem_cb)(unsigned int, qemu_plugin_meminfo_t, uint64_t, void *);

/*
 * Callbacks get (id, thing) before version 7 and (thing, userdata) from then on; see
 * `argument`. qemu_plugin_reset calls back with (id) and (userdata).
 */
typedef void (*two_words_cb)(uintptr_t, uintptr_t);
void qemu_plugin_reset(qemu_plugin_id_t, void (*)(qemu_plugin_id_t), void *);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, two_words_cb, void *);
void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t, two_words_cb, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, two_words_cb, void *);

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, exec_cb, enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, exec_cb, enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, mem_cb, enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void *);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);

/* Returns a pointer to the code before version 3; later copies it and returns its length. */
uintptr_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);

/* Additions to a word in memory, in version 1 only. */
WEAK void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum qemu_plugin_op, void *, uint64_t);
WEAK void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op, void *, uint64_t);

/* Additions to a word of each CPU's entry in a scoreboard, from version 2 on. */
struct qemu_plugin_scoreboard;
typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;
WEAK struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t);
WEAK void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *, unsigned int);
WEAK void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *, enum qemu_plugin_op, qemu_plugin_u64, uint64_t);
WEAK void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *, enum qemu_plugin_op, qemu_plugin_u64, uint64_t);

EXPORT int qemu_plugin_version = 1;

__attribute__((constructor)) static void choose_version(void)
{
    const char *version = getenv("FWDLAB_PLUGIN_API");
    if (version) qemu_plugin_version = atoi(version);
}

/* The argument of a callback that is neither the plugin's number nor its user data. */
static uintptr_t argument(uintptr_t first, uintptr_t second)
{
    return qemu_plugin_version >= 7 ? first : second;
}

/* The longest instruction of x86. */
#define LONGEST 15

/* Copies an instruction's code; returns its length. */
static size_t code_of(const struct qemu_plugin_insn *insn, uint8_t code[LONGEST])
{
    size_t size = qemu_plugin_insn_size(insn);
    if (size > LONGEST) size = LONGEST;
    uintptr_t returned = qemu_plugin_insn_data(insn, code, size);
    if (returned > LONGEST) memcpy(code, (const void *)returned, size);
    return size;
}
