/*
 * A model of caches: how often the kernel's code and data would not have been there.
 *
 * Three of them: one for instructions, one for data, and behind both a unified one. Each is
 * set-associative, throws out what was used longest ago, takes in what is written, and is
 * asked by virtual address. What no CPU does: nothing is fetched ahead. What is not seen:
 * accesses of programs, of page tables' walks and of devices, which write packets past it.
 *
 * Misses are booked on the block of code that has them, in a file that is mapped shared.
 * Blocks are watched while `on` isn't 0: otherwise this costs nothing.
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
    uint64_t code;    /* lines that the cache of instructions had not */
    uint64_t data;    /* lines that the cache of data had not */
    uint64_t last;    /* of both, those that the unified one had not either */
};

struct caches {
    uint64_t magic;
    uint64_t places;
    volatile uint64_t on;
    uint64_t overflow; /* blocks that found no place */
    struct shape code, data, last; /* as whoever made the file wants them */
    uint64_t reserved[6];
};

/* The lines of each set, the last used first; all ones: none. */
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

/* Uses a line; true where it was there. */
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
