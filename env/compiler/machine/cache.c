/* Caches one behind the other: set-associative, least recently used lines leave, written lines are
 * fetched (write-allocate) and go back when they leave. Beside each stands a fully associative
 * cache of its size, and the set of all lines ever seen: what tells conflict, capacity and
 * compulsory misses apart (Hill and Smith, Evaluating associativity in CPU caches, 1989).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is counted for each tensor and kind of access. */
enum { KW_ACCESSES, KW_MISSES, KW_ASSOCIATIVE, KW_COMPULSORY, KW_COUNTERS };

/* A line of the fully associative cache, in a ring from the newest to the oldest. */
typedef struct {
    uint64_t line;
    uint32_t newer, older;
} kw_node;

/* 512 neighbouring lines: which of them were seen. */
typedef struct {
    uint64_t number; /* plus one; 0 is an empty entry */
    uint64_t seen[8];
} kw_page;

typedef struct {
    uint64_t sets, ways, line_bits;
    uint64_t set_mask; /* 0 where the number of sets is no power of two */
    uint64_t *tags;    /* (line + 1) * 2 + dirty, newest first in each set; NULL if there is one set */
    kw_node *nodes;
    uint32_t capacity, used, newest;
    uint32_t *table; /* node + 1, by the hash of its line; 0 is an empty entry */
    uint64_t table_mask;
    int hash_shift, near_bits;
    uint8_t *is_dirty; /* by node; NULL where the tags say it */
    kw_page *pages; /* NULL where lines are as long as those of the level before */
    uint64_t page_mask, page_count;
    uint64_t *counters; /* tensor, read or write, counter */
    uint64_t written_back;
} kw_level;

typedef struct {
    int count, has_failed;
    kw_level levels[8];
} kw_cache;

static inline uint64_t kw_hash(uint64_t value) { return value * UINT64_C(0x9E3779B97F4A7C15); }

/* Where the search for a line begins; of a large table neighbours begin side by side. */
static inline uint64_t kw_home(const kw_level *level, uint64_t line)
{
    uint64_t near = line & ((UINT64_C(1) << level->near_bits) - 1);
    return ((kw_hash(line >> level->near_bits) >> level->hash_shift) + near) & level->table_mask;
}

/* Take an entry out of the table and close the gap that it leaves in its chain. */
static void kw_forget(kw_level *level, uint64_t line)
{
    uint64_t mask = level->table_mask, gap = kw_home(level, line);
    while (level->nodes[level->table[gap] - 1].line != line)
        gap = (gap + 1) & mask;
    for (uint64_t next = (gap + 1) & mask; level->table[next]; next = (next + 1) & mask) {
        uint64_t home = kw_home(level, level->nodes[level->table[next] - 1].line);
        if (((next - home) & mask) >= ((next - gap) & mask)) {
            level->table[gap] = level->table[next];
            gap = next;
        }
    }
    level->table[gap] = 0;
}

/* The node of a line, plus one; 0 if it is not there. */
static inline uint32_t kw_find(const kw_level *level, uint64_t line)
{
    uint64_t at = kw_home(level, line);
    uint32_t found;
    while ((found = level->table[at]) && level->nodes[found - 1].line != line)
        at = (at + 1) & level->table_mask;
    return found;
}

/* Whether the fully associative cache holds a line; it is the newest there afterwards. A dirty line
 * that left for it stands in `dirty`, plus one. */
static inline int kw_associative(kw_level *level, uint64_t line, int write, uint64_t *dirty)
{
    kw_node *nodes = level->nodes;
    uint32_t newest = level->newest, found;
    if (level->used && nodes[newest].line == line) {
        if (level->is_dirty)
            level->is_dirty[newest] |= (uint8_t)write;
        return 1;
    }
    found = kw_find(level, line);
    if (found) {
        kw_node *node = &nodes[--found];
        uint32_t oldest = nodes[newest].newer;
        if (level->is_dirty)
            level->is_dirty[found] |= (uint8_t)write;
        level->newest = found;
        if (found == oldest)
            return 1; /* the ring turns by one */
        nodes[node->newer].older = node->older;
        nodes[node->older].newer = node->newer;
        node->newer = oldest;
        node->older = newest;
        nodes[oldest].older = nodes[newest].newer = found;
        return 1;
    }
    if (level->used < level->capacity) {
        found = level->used++;
        uint32_t oldest = found ? nodes[newest].newer : 0;
        nodes[found].newer = oldest;
        nodes[found].older = newest;
        nodes[oldest].older = nodes[newest].newer = found;
    } else {
        found = nodes[newest].newer;
        kw_forget(level, nodes[found].line);
        if (level->is_dirty && level->is_dirty[found])
            *dirty = nodes[found].line + 1;
    }
    nodes[found].line = line;
    if (level->is_dirty)
        level->is_dirty[found] = (uint8_t)write;
    level->newest = found;
    uint64_t at = kw_home(level, line);
    while (level->table[at])
        at = (at + 1) & level->table_mask;
    level->table[at] = found + 1;
    return 0;
}

static inline uint64_t *kw_set(const kw_level *level, uint64_t line)
{
    uint64_t set = level->set_mask ? line & level->set_mask : line % level->sets;
    return level->tags + set * level->ways;
}

/* The same of the set that a line falls into. */
static inline int kw_in_set(kw_level *level, uint64_t line, int write, uint64_t *dirty)
{
    uint64_t *way = kw_set(level, line), tag = (line + 1) * 2, ways = level->ways;
    if ((way[0] & ~UINT64_C(1)) == tag) {
        way[0] |= (uint64_t)write;
        return 1;
    }
    uint64_t moved = way[0];
    for (uint64_t w = 1; w < ways; w++) {
        uint64_t here = way[w];
        way[w] = moved;
        if ((here & ~UINT64_C(1)) == tag) {
            way[0] = here | (uint64_t)write;
            return 1;
        }
        moved = here;
    }
    way[0] = tag | (uint64_t)write;
    if (moved & 1)
        *dirty = moved / 2;
    return 0;
}

static int kw_more_pages(kw_level *level)
{
    uint64_t count = (level->page_mask + 1) * 2;
    kw_page *fresh = calloc(count, sizeof *fresh);
    if (!fresh)
        return 0;
    for (uint64_t i = 0; i <= level->page_mask; i++) {
        if (!level->pages[i].number)
            continue;
        uint64_t at = kw_hash(level->pages[i].number) >> 20 & (count - 1);
        while (fresh[at].number)
            at = (at + 1) & (count - 1);
        fresh[at] = level->pages[i];
    }
    free(level->pages);
    level->pages = fresh;
    level->page_mask = count - 1;
    return 1;
}

/* Whether a line is touched for the first time. */
static int kw_is_first(kw_cache *cache, kw_level *level, uint64_t line)
{
    uint64_t number = line / 512 + 1, bit = UINT64_C(1) << (line & 63);
    uint64_t at = kw_hash(number) >> 20 & level->page_mask;
    while (level->pages[at].number && level->pages[at].number != number)
        at = (at + 1) & level->page_mask;
    if (!level->pages[at].number) {
        if (level->page_count * 2 > level->page_mask) {
            if (!kw_more_pages(level)) {
                cache->has_failed = 1;
                return 0;
            }
            return kw_is_first(cache, level, line);
        }
        level->page_count++;
        level->pages[at].number = number;
    }
    uint64_t *seen = &level->pages[at].seen[line / 64 % 8];
    if (*seen & bit)
        return 0;
    *seen |= bit;
    return 1;
}

/* A dirty line leaves a level: the next one that holds it takes what was written. */
static void kw_write_back(kw_cache *cache, int from, uint64_t line)
{
    uint64_t address = line << cache->levels[from].line_bits;
    cache->levels[from].written_back++;
    for (int k = from + 1; k < cache->count; k++) {
        kw_level *level = &cache->levels[k];
        line = address >> level->line_bits;
        if (level->tags) {
            uint64_t *way = kw_set(level, line), tag = (line + 1) * 2;
            for (uint64_t w = 0; w < level->ways; w++)
                if ((way[w] & ~UINT64_C(1)) == tag) {
                    way[w] |= 1;
                    return;
                }
        } else {
            uint32_t found = kw_find(level, line);
            if (found) {
                level->is_dirty[found - 1] = 1;
                return;
            }
        }
    }
}

/* Whether a level holds what is at an address; it does afterwards. What is a line's first access at
 * one level is so at the next, where lines are alike: `first` carries it on. */
static inline int kw_hits(
    kw_cache *cache, int k, uint64_t address, int tensor, int write, int *first)
{
    kw_level *level = &cache->levels[k];
    uint64_t line = address >> level->line_bits, dirty = 0;
    uint64_t *counters = level->counters + (tensor * 2 + write) * KW_COUNTERS;
    counters[KW_ACCESSES]++;
    int is_there = kw_associative(level, line, write, &dirty);
    if (level->pages)
        *first = !is_there && kw_is_first(cache, level, line);
    counters[KW_ASSOCIATIVE] += (uint64_t)!is_there;
    counters[KW_COMPULSORY] += (uint64_t)*first;
    if (level->tags)
        is_there = kw_in_set(level, line, write, &dirty);
    if (dirty)
        kw_write_back(cache, k, dirty - 1);
    if (!is_there)
        counters[KW_MISSES]++;
    return is_there;
}

__attribute__((noinline)) static void kw_further(
    kw_cache *cache, uint64_t address, int tensor, int write, int first)
{
    for (int k = 1; k < cache->count; k++)
        if (kw_hits(cache, k, address, tensor, write, &first))
            return;
}

/* One access. */
static inline void kw_touch(void *caches, uint64_t address, int tensor, int write)
{
    int first;
    if (!kw_hits(caches, 0, address, tensor, write, &first))
        kw_further(caches, address, tensor, write, first);
}

void kw_close(kw_cache *cache)
{
    for (int k = 0; cache && k < cache->count; k++) {
        kw_level *level = &cache->levels[k];
        free(level->tags);
        free(level->nodes);
        free(level->table);
        free(level->is_dirty);
        free(level->pages);
        free(level->counters);
    }
    free(cache);
}

/* Empty caches; `geometry` has the sets, ways and line's bits of each. NULL if there is no memory. */
kw_cache *kw_open(int count, const uint64_t *geometry, int tensors)
{
    kw_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->count = count;
    int is_whole = 1;
    for (int k = 0; k < count; k++) {
        kw_level *level = &cache->levels[k];
        level->sets = geometry[3 * k];
        level->ways = geometry[3 * k + 1];
        level->line_bits = geometry[3 * k + 2];
        level->set_mask = level->sets & (level->sets - 1) ? 0 : level->sets - 1;
        level->capacity = (uint32_t)(level->sets * level->ways);
        int bits = 3;
        while (UINT64_C(1) << bits < UINT64_C(8) * level->capacity)
            bits++;
        level->hash_shift = 64 - bits;
        level->table_mask = (UINT64_C(1) << bits) - 1;
        level->page_mask = 63;
        level->near_bits = bits > 18 ? 4 : 0;
        if (level->sets > 1)
            level->tags = calloc(level->capacity, sizeof *level->tags);
        else
            level->is_dirty = calloc(level->capacity, sizeof *level->is_dirty);
        level->nodes = calloc(level->capacity, sizeof *level->nodes);
        level->table = calloc(level->table_mask + 1, sizeof *level->table);
        int is_alike = k && level->line_bits == level[-1].line_bits;
        if (!is_alike)
            level->pages = calloc(level->page_mask + 1, sizeof *level->pages);
        level->counters = calloc((size_t)tensors * 2 * KW_COUNTERS, sizeof *level->counters);
        is_whole &= (level->tags || level->is_dirty) && level->nodes && level->table;
        is_whole &= (is_alike || level->pages) && level->counters;
    }
    if (is_whole)
        return cache;
    kw_close(cache);
    return NULL;
}

/* A stream of accesses; without `writes` all are reads, without `tensors` all are of the first. */
void kw_replay(
    kw_cache *cache, const uint64_t *addresses, const uint8_t *writes, const int32_t *tensors,
    int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        kw_touch(cache, addresses[i], tensors ? tensors[i] : 0, writes ? writes[i] : 0);
}

/* The counters of a level, its lines written back last; 0 if memory ran out on the way. */
int kw_read(const kw_cache *cache, int k, int tensors, uint64_t *out)
{
    size_t size = (size_t)tensors * 2 * KW_COUNTERS;
    memcpy(out, cache->levels[k].counters, size * sizeof *out);
    out[size] = cache->levels[k].written_back;
    return !cache->has_failed;
}
