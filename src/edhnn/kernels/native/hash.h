// Dropout without a random stream: whether channel c of link k is kept is a function of (seed, k, c), so that backward
// draws forward's mask again and the order of threads cannot change it.
//
// A link's 64-bit key is splitmix64 of its number and the seed. Channels come in blocks of 32, served by 16 words of 32
// bits: word j of a block decides channel j by its low half and channel j + 16 by its high half. A channel is dropped
// when its 16 bits lie below the threshold, so the probability is exactly threshold / 65536.
#pragma once

#include <cstdint>

namespace edhnn {

struct Key {
    std::uint32_t low, high;
};

inline std::uint64_t splitmix64(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

inline std::uint64_t fold_seed(std::uint64_t seed) { return splitmix64(seed + 0x9E3779B97F4A7C15u); }

inline Key key_of(std::uint64_t folded_seed, std::uint64_t link) {
    const std::uint64_t key = splitmix64(folded_seed + (link + 1) * 0x9E3779B97F4A7C15u);
    return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

constexpr std::uint32_t kFirstFactor = 0x7FEB352Du, kSecondFactor = 0x846CA68Bu;

// What a word's number contributes: a fixed, well mixed pattern, tabulated once per call.
inline std::uint32_t word_pattern(std::uint32_t word) {
    std::uint32_t x = (word + 1) * 0x9E3779B9u;
    x = (x ^ (x >> 16)) * kFirstFactor;
    x = (x ^ (x >> 15)) * kSecondFactor;
    return x ^ (x >> 16);
}

inline std::uint32_t hash_word(std::uint32_t pattern, Key key) {
    std::uint32_t x = (pattern ^ key.low) * kFirstFactor;
    x = (x ^ (x >> 15) ^ key.high) * kSecondFactor;
    return x ^ (x >> 16);
}

inline std::int64_t blocks_of(std::int64_t channels) { return (channels + 31) / 32; }

}  // namespace edhnn
