/*
 * A model of caches: how often the kernel's code and data would have missed them.
 *
 * It consists of three caches: one for instructions, one for data, and a unified one behind
 * both. Each is set-associative with LRU replacement and write allocation, and uses virtual
 * addresses. Unlike a CPU it does not prefetch. It does not see accesses of programs, of page
 * table walks and of devices, which bypass it when they write packets.
 *
 * Misses are attributed to the block of code that causes them, in a file that is mapped shared.
 * Blocks are watched while `on` isn't 0: otherwise the model costs nothing.
 */
#define CACHES_MAGIC 0x3148434143574643ull /* "CFWCACH1" */
#define PLACES (1u << 16)
#define LINE 6 /* 64 bytes */

struct shape {
    uint64_t sets; /* a power of two */
    uint64_t ways;
};

/* A block of code. */
struct place {
    uint64_t address; /* 0: free */
    uint64_t references; /* reads and writes of data */
    uint64_t code;    /* lines missing in the instruction cache */
    uint64_t data;    /* lines missing in the data cache */
    uint64_t last;    /* lines of both that are also missing in the unified cache */
};

struct caches {
    uint64_t magic;
    uint64_t places;
    volatile uint64_t on;
    uint64_t overflow; /* blocks without a free place */
    struct shape code, data, last; /* set by the creator of the file */
    uint64_t reserved[6];
};

/* The lines of each set, most recently used first; all ones: none. */
struct cache {
    uint64_t sets, ways;
    uint64_t *lines;
};

static bool make_cache(struct cache *cache, const struct shape *shape)
{
    if (!shape->ways || !shape->sets || shape->sets & (shape->sets - 1)) return false;
    cache->sets = shape->sets;
    cache->ways = shape->ways;
    size_t size = cache->sets * cache->ways * sizeof(uint64_t);
    cache->lines = malloc(size);
    if (cache->lines) memset(cache->lines, 0xff, size);
    return cache->lines;
}

/* Uses a line; true if it was cached. */
static bool use(struct cache *cache, uint64_t line)
{
    uint64_t *set = cache->lines + (line & (cache->sets - 1)) * cache->ways;
    if (set[0] == line) return true;
    uint64_t way = 1;
    while (way < cache->ways && set[way] != line) way++;
    bool found = way < cache->ways;
    if (!found) way = cache->ways - 1;
    memmove(set + 1, set, way * sizeof(uint64_t));
    set[0] = line;
    return found;
}
