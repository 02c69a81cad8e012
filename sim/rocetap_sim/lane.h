// A MAC's sending side: frames to beats, with padding, frame check sequence and gap.
#pragma once

#include "design.h"

#include <cstdint>
#include <cstring>
#include <vector>

// ------------------------------------------------------------------ frame check sequence

// IEEE 802.3, 3.2.9: CRC-32, least significant bit first; four table look-ups for four octets.
struct Crc32 {
    uint32_t table[4][256];

    constexpr Crc32() : table() {
        for (uint32_t octet = 0; octet < 256; ++octet) {
            uint32_t value = octet;
            for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0);
            table[0][octet] = value;
        }
        for (uint32_t octet = 0; octet < 256; ++octet)
            for (int ahead = 1; ahead < 4; ++ahead) {
                const uint32_t before = table[ahead - 1][octet];
                table[ahead][octet] = (before >> 8) ^ table[0][before & 0xFF];
            }
    }

    uint32_t operator()(const uint8_t* data, size_t size) const {
        uint32_t value = 0xFFFFFFFFu;
        for (; size >= 4; size -= 4, data += 4) {
            uint32_t word;
            std::memcpy(&word, data, 4);
            value ^= word;
            value = table[3][value & 0xFF] ^ table[2][(value >> 8) & 0xFF] ^
                    table[1][(value >> 16) & 0xFF] ^ table[0][value >> 24];
        }
        for (; size; --size, ++data) value = (value >> 8) ^ table[0][(value ^ *data) & 0xFF];
        return ~value;
    }
};

static constexpr Crc32 crc32{};

// ------------------------------------------------------------------ beats

constexpr unsigned PAYLOAD_WORDS = (BEAT_SIZE + 31) / 32;

struct Beat {
    uint32_t words[PAYLOAD_WORDS];

    void set(unsigned offset, uint32_t value) {
        words[offset / 32] |= value << (offset % 32);
        if (offset % 32 && offset / 32 + 1 < PAYLOAD_WORDS)
            words[offset / 32 + 1] |= static_cast<uint32_t>(uint64_t(value) << (offset % 32) >> 32);
    }
};

// ------------------------------------------------------------------ frames

constexpr size_t MIN_FRAME = 60;  // IEEE 802.3, 3.2.8, without FCS
constexpr size_t FCS = 4;

enum FrameFlag : uint8_t {
    BAD_FCS = 1,      // the last bit of the FCS is inverted
    MAC_ERROR = 2,    // `error` with the last beat
    LOST_BEFORE = 4,  // a `lost` beat goes before the frame
    NO_PADDING = 8,   // the frame stays shorter than 64 octets
};

// The sender of one port: one frame at a time, then its gap.
class Lane {
public:
    bool busy() const { return beat_ < beats_ || idle_; }
    bool starts() const { return beat_ == 0 && beats_; }

    void lost_marker() {
        size_ = BUS_OCTETS;
        error_ = sliced_ = false;
        lost_ = true;
        prepare(0);
        gap(0);
    }

    // Octets from destination address to FCS, as they go on the wire.
    void frame(const uint8_t* data, size_t captured, size_t original, uint8_t flags,
               uint32_t gap_octets) {
        size_t size = captured;
        sliced_ = captured < original;
        if (!sliced_ && !(flags & NO_PADDING) && size < MIN_FRAME) size = MIN_FRAME;
        size_ = size + FCS;
        error_ = flags & MAC_ERROR;
        lost_ = false;
        prepare(captured);
        std::memcpy(buffer_.data(), data, captured);
        if (!sliced_) {
            uint32_t check = crc32(buffer_.data(), size);
            if (flags & BAD_FCS) check ^= 0x80000000u;
            for (size_t octet = 0; octet < FCS; ++octet)
                buffer_[size + octet] = static_cast<uint8_t>(check >> (8 * octet));
        }
        gap(gap_octets);
    }

    // Gives one beat, or false in a gap.
    bool next(Beat& beat) {
        if (beat_ == beats_) {
            if (idle_) --idle_;
            return false;
        }
        std::memset(beat.words, 0, sizeof beat.words);
        std::memcpy(beat.words, buffer_.data() + beat_ * BUS_OCTETS, BUS_OCTETS);
        if (beat_ == 0) beat.set(BEAT_FIRST, 1);
        if (++beat_ == beats_) {
            beat.set(BEAT_LAST, 1);
            beat.set(BEAT_END, (size_ - 1) % BUS_OCTETS);
            if (error_) beat.set(BEAT_ERROR, 1);
            if (sliced_) beat.set(BEAT_SLICED, 1);
            if (lost_) beat.set(BEAT_LOST, 1);
        }
        return true;
    }

private:
    // Room for the frame in whole beats, zero from octet `from` on.
    void prepare(size_t from) {
        beat_ = 0;
        beats_ = (size_ + BUS_OCTETS - 1) / BUS_OCTETS;
        if (buffer_.size() < beats_ * BUS_OCTETS) buffer_.resize(beats_ * BUS_OCTETS);
        std::memset(buffer_.data() + from, 0, beats_ * BUS_OCTETS - from);
    }

    // The wire is busy for the frame and the gap, in octets; what whole clocks leave over is
    // carried to the next gap, so that on average the rate is exact.
    void gap(uint32_t octets) {
        const int64_t over = carry_ + int64_t(size_) + octets - int64_t(beats_ * BUS_OCTETS);
        idle_ = over > 0 ? over / BUS_OCTETS : 0;
        carry_ = over > 0 ? over % BUS_OCTETS : 0;
    }

    std::vector<uint8_t> buffer_;
    size_t size_ = 0, beats_ = 0, beat_ = 0;
    uint64_t idle_ = 0;
    int64_t carry_ = 0;
    bool error_ = false, sliced_ = false, lost_ = false;
};
