/*
 * Call tree: the instructions of each node.
 *
 * Calls and returns are identified by the address at which they write or read the return
 * address: it distinguishes frames however they are left, and stacks. A return whose target is
 * not the call site (a thunk of an indirect call has overwritten it) ends its frame all the
 * same, and continues in the frame below like a jump.
 *
 * Frames are stored by the page of the stack that contains their return address. Between two
 * stacks there is a page that belongs to neither, so sizes and alignments of stacks need not be
 * known. A call on a page without frames continues from the caller's page: a stack grows, or an
 * interrupt switches to its own stack. A return to such a page means that a thread begins.
 *
 * An interrupt is a block that cannot follow the previous one. Its entry address is remembered.
 * Its frames have no caller; the interrupted code continues after `iret`.
 *
 * A node is a block with the node that called its function. The reader of the file maps blocks
 * to functions. Nodes are created and counted while `on` isn't 0; frames are always tracked.
 * While `freeze` isn't 0 the virtual CPU waits at the beginning of a block, so that these counts
 * and the counts of count.c are read at the same moment.
 */
#define CALLS_MAGIC 0x31534c4c41435746ull /* "FWCALLS1" */
#define NODES (1u << 21)
/* In place of a caller: an entry into the kernel, the start of a thread, unknown. */
#define ENTRY NODES
#define THREAD (NODES + 1)
#define LOST (NODES + 2)

struct node {
    uint64_t address; /* of the block; 0: free */
    uint64_t caller;  /* a node, or one of the words above */
    uint64_t instructions;
};

struct calls {
    uint64_t magic;
    uint64_t nodes;
    volatile uint64_t on;
    volatile uint64_t freeze;
    volatile uint64_t frozen; /* how often a CPU waited */
    uint64_t overflow;        /* instructions without a free node */
    uint64_t calls;
    uint64_t returns;         /* returns to the call site */
    uint64_t jumps;           /* returns to other addresses */
    uint64_t lost;            /* returns of unknown frames */
    uint64_t interrupts;
    uint64_t reserved[5];
};

/* A block of code, and how it ends. */
enum end { DIRECT, ANYWHERE };
struct block {
    uint64_t address, end, target;
    uint32_t instructions;
    enum end how;
};

struct frame {
    uint64_t sp;      /* address of its return address */
    uint64_t back;    /* its return address */
    uint64_t site;    /* the block that called; 0: an interrupt */
    uint32_t node;    /* of the call; LOST + 1: not yet determined */
};
#define UNASKED (LOST + 1)

struct page {
    uint64_t number; /* 0: free */
    struct frame *frames;
    uint32_t depth, room;
    /* Call site of the lowest frame; base counts if there is none. */
    struct page *link;
    uint32_t link_depth, base;
};

#define PAGES (1u << 15)
#define ENTRIES (1u << 12)

static struct calls *calls;
static struct node *nodes;
static struct page *pages;
static uint64_t *entries; /* addresses at which interrupts enter */

/* The current position: the top frame of a page. */
static struct page outside;
static struct page *page = &outside;
static const struct block *last;
static uint64_t last_user;
/* The frame that the last return ended, to compare with the next block. */
static struct frame returned;
static bool has_returned, has_switched;

static struct page *page_of(uint64_t sp)
{
    uint64_t number = sp >> 12;
    for (uint32_t i = 0; i < PAGES; i++) {
        struct page *found = &pages[((number * 0x9e3779b97f4a7c15ull >> 40) + i) % PAGES];
        if (found->number == number) return found;
        if (found->number == 0) {
            found->number = number;
            found->base = THREAD;
            return found;
        }
    }
    return &outside;
}

static struct frame *push(struct page *on)
{
    if (on->depth == on->room) {
        uint32_t room = on->room ? 2 * on->room : 16;
        struct frame *frames = realloc(on->frames, room * sizeof(struct frame));
        if (!frames) abort();
        on->frames = frames;
        on->room = room;
    }
    return &on->frames[on->depth++];
}

/* If no frame of the page is left, continues on the caller's page. */
static void settle(void)
{
    while (page->depth == 0 && page->link) {
        struct page *below = page->link;
        if (below->depth > page->link_depth) below->depth = page->link_depth;
        page->link = NULL;
        page = below;
    }
}

static uint32_t find_node(uint32_t caller, uint64_t address)
{
    if (caller == UNASKED) caller = LOST;
    uint64_t hash = (address ^ (uint64_t)caller << 43) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9ull;
    for (uint32_t i = 0; i < 4096; i++) {
        uint32_t at = ((hash >> 32) + i) % NODES;
        struct node *node = &nodes[at];
        if (node->address == address && node->caller == caller) return at;
        if (node->address == 0) {
            node->caller = caller;
            node->address = address;
            return at;
        }
    }
    return UNASKED;
}

/* The node that called the frame at this depth. */
static uint32_t caller(struct page *on, uint32_t depth)
{
    if (depth > on->depth) return LOST;
    if (depth == 0) return on->link ? caller(on->link, on->link_depth) : on->base;
    struct frame *frame = &on->frames[depth - 1];
    if (frame->site == 0) return ENTRY;
    if (frame->node == UNASKED) frame->node = find_node(caller(on, depth - 1), frame->site);
    return frame->node;
}

static void book(uint64_t address, uint32_t instructions)
{
    if (!calls || !calls->on) return;
    uint32_t at = find_node(caller(page, page->depth), address);
    if (at == UNASKED) calls->overflow += instructions;
    else nodes[at].instructions += instructions;
}

/* True if a page is in the chain of links of another: links must not form a cycle. */
static bool leads_to(const struct page *from, const struct page *to)
{
    for (; from; from = from->link)
        if (from == to) return true;
    return false;
}

static void called(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t sp, void *data)
{
    const struct block *block = data;
    (void)cpu;
    if (!qemu_plugin_mem_is_store(info)) return;
    struct page *to = page_of(sp);
    /* A stack starts again after an entry from a program. */
    if (page == &outside && page->depth == 0) to->depth = 0;
    while (to->depth && to->frames[to->depth - 1].sp <= sp && to->frames[to->depth - 1].site) to->depth--;
    if (to != page && to->depth == 0) {
        bool is_below = leads_to(page, to);
        to->link = is_below ? NULL : page;
        to->link_depth = page->depth;
        to->base = is_below ? LOST : THREAD;
    }
    page = to;
    *push(to) = (struct frame){ sp, block->end, block->address, UNASKED };
    calls->calls++;
}

/*
 * True if a page continues from the page above it, as within one stack. A switch to another
 * stack calls on that stack before it returns there, to fill the CPU's return predictor: the
 * stack of a new thread then continues from the previous stack, until the CPU returns to it.
 */
static bool grows_from(const struct page *on)
{
    return on->link->number == on->number + 1;
}

static void went_back(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t sp, void *data)
{
    (void)cpu;
    (void)data;
    if (qemu_plugin_mem_is_store(info)) return;
    struct page *from = page_of(sp);
    has_switched = from != page;
    has_returned = false;
    uint32_t at = from->depth;
    while (at && from->frames[at - 1].sp < sp && from->frames[at - 1].site) at--;
    if (at && from->frames[at - 1].sp == sp && from->frames[at - 1].site) {
        returned = from->frames[at - 1];
        has_returned = true;
        from->depth = at - 1;
        page = from;
        settle();
        return;
    }
    if (at == 0 && (from->link ? !grows_from(from) : has_switched)) {
        /* A thread begins. */
        from->depth = 0;
        from->link = NULL;
        from->base = THREAD;
        page = from;
        return;
    }
    /* An address was pushed to be returned to: a jump, unless frames are lost. */
    if (at != from->depth) calls->lost++;
    if (from == page) from->depth = at;
    else calls->lost++;
    calls->jumps++;
    settle();
}

static void interrupt_ends(unsigned int cpu, void *data)
{
    (void)cpu;
    (void)data;
    struct page *on = page;
    uint32_t depth = on->depth;
    for (;;) {
        if (depth == 0) {
            if (!on->link) return;
            depth = on->link_depth;
            on = on->link;
            if (depth > on->depth) return;
            continue;
        }
        if (on->frames[depth - 1].site == 0) {
            on->depth = depth - 1;
            page = on;
            settle();
            return;
        }
        depth--;
    }
}

/* True if interrupts enter at the address; with `learn`, from now on. */
static bool enters(uint64_t address, bool learn)
{
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t *entry = &entries[((address * 0x9e3779b97f4a7c15ull >> 40) + i) % ENTRIES];
        if (*entry == address) return true;
        if (*entry) continue;
        if (learn) *entry = address;
        return learn;
    }
    return learn;
}

static void wait_frozen(void)
{
    if (!calls->freeze) return;
    calls->frozen++;
    while (calls->freeze) usleep(20);
}

static void program_goes_on(unsigned int cpu, void *data)
{
    (void)cpu;
    (void)data;
    wait_frozen();
}

static void block_begins(unsigned int cpu, void *data)
{
    const struct block *block = data;
    (void)cpu;
    wait_frozen();
    uint64_t at = block->address;
    bool interrupts = false;
    uint64_t user = sum(USER);
    if (user != last_user) {
        last_user = user;
        outside.depth = 0;
        page = &outside;
    } else if (last) {
        bool follows = last->how == ANYWHERE || at == last->target || (at >= last->address && at <= last->end);
        interrupts = enters(at, !follows);
    }
    if (has_returned && !interrupts) {
        if (returned.back == at) calls->returns++;
        else if (has_switched && page->depth == 0 && !page->link) page->base = THREAD;
        if (returned.back != at) calls->jumps++;
    }
    has_returned = false;
    if (interrupts) {
        calls->interrupts++;
        uint64_t above = page->depth ? page->frames[page->depth - 1].sp : UINT64_MAX;
        *push(page) = (struct frame){ above - 1, 0, 0, UNASKED };
    }
    if (block->instructions) book(at, block->instructions);
    last = block;
}

/* Effect of an instruction on the control flow. */
enum flow { GOES_ON, JUMPS, CALLS, RETURNS, ENDS_INTERRUPT, LEAVES };

static enum flow flow(const uint8_t *code, size_t size, uint64_t next, uint64_t *target)
{
    size_t i = 0;
    while (i < size && (code[i] == 0x66 || code[i] == 0xf2 || code[i] == 0xf3 || code[i] == 0x2e ||
                        code[i] == 0x36 || code[i] == 0x3e || code[i] == 0x26 || code[i] == 0x64 ||
                        code[i] == 0x65 || code[i] == 0x67)) i++;
    if (i < size && (code[i] & 0xf0) == 0x40) i++;
    if (i >= size) return GOES_ON;
    uint8_t b = code[i], then = i + 1 < size ? code[i + 1] : 0;
    int32_t far = 0;
    if (size >= 4) memcpy(&far, code + size - 4, 4);
    *target = 0;
    if ((b & 0xf0) == 0x70 || b == 0xeb || (b >= 0xe0 && b <= 0xe3)) {
        *target = next + (int8_t)code[size - 1];
        return JUMPS;
    }
    if (b == 0xe9 || b == 0xe8 || (b == 0x0f && (then & 0xf0) == 0x80)) {
        *target = next + (int64_t)far;
        return b == 0xe8 ? CALLS : JUMPS;
    }
    if (b == 0xc3 || b == 0xc2) return RETURNS;
    if (b == 0xcf) return ENDS_INTERRUPT;
    if (b == 0xff && ((then >> 3) & 7) == 2) return CALLS;
    if (b == 0xff && ((then >> 3) & 7) == 4) return LEAVES;
    if (b == 0xca || b == 0xcb || b == 0xea) return LEAVES;
    if (b == 0x0f && (then == 0x05 || then == 0x07 || then == 0x34 || then == 0x35)) return LEAVES;
    return GOES_ON;
}

/* Watches a block of kernel code that counts `instructions` when it begins. */
static void watch(struct qemu_plugin_tb *tb, uint32_t instructions)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, n - 1);
    struct block *block = calloc(1, sizeof *block);
    if (!block) abort();
    block->address = qemu_plugin_tb_vaddr(tb);
    block->end = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
    block->instructions = instructions;
    /* QEMU 7.2 confuses reads with writes if only one kind is requested. */
    uint8_t code[LONGEST];
    size_t size = code_of(insn, code);
    switch (flow(code, size, block->end, &block->target)) {
    case GOES_ON: case JUMPS:
        break;
    case CALLS:
        qemu_plugin_register_vcpu_mem_cb(insn, called, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, block);
        block->how = block->target ? DIRECT : ANYWHERE;
        break;
    case RETURNS:
        qemu_plugin_register_vcpu_mem_cb(insn, went_back, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, block);
        block->how = ANYWHERE;
        break;
    case ENDS_INTERRUPT:
        qemu_plugin_register_vcpu_insn_exec_cb(insn, interrupt_ends, QEMU_PLUGIN_CB_NO_REGS, NULL);
        block->how = ANYWHERE;
        break;
    case LEAVES:
        block->how = ANYWHERE;
        break;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, block_begins, QEMU_PLUGIN_CB_NO_REGS, block);
}

/* An instruction counted by itself. */
static void one_alone(unsigned int cpu, void *data)
{
    (void)cpu;
    book((uint64_t)data, 1);
}

/* Follows calls from now on, into the file at `path`. */
static bool follow_calls(const char *path)
{
    calls = mapped(path, sizeof(struct calls) + NODES * sizeof(struct node));
    pages = calloc(PAGES, sizeof *pages);
    entries = calloc(ENTRIES, sizeof *entries);
    if (!calls || !pages || !entries) return false;
    nodes = (struct node *)(calls + 1);
    outside.base = ENTRY;
    calls->nodes = NODES;
    calls->magic = CALLS_MAGIC;
    return true;
}
