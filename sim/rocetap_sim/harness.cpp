// The simulated board's native half: clocks the Verilated probe, plays the MAC at its frame
// streams and the far end of its link.
//
// One call of `step` is one clock: all inputs change with the falling edge, outputs are sampled
// once they have settled, then the rising edge comes. The Python half is board.py; `Feed` and
// `Counters` are mirrored there.

#include "design.h"
#include "lane.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

// ------------------------------------------------------------------ what the model has to say

static thread_local std::string model_output;

extern "C" int rocetap_print(const char* format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    const int size = std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (model_output.size() < 4096) model_output += line;
    return size;
}

struct ModelStopped : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static void stop(const char* message) {
    std::string text = model_output + (message ? message : "");
    model_output.clear();
    throw ModelStopped(text.empty() ? "the model stopped" : text);
}

void vl_fatal(const char*, int, const char*, const char* message) { stop(message); }
void vl_stop(const char*, int, const char*) { stop(nullptr); }
void vl_finish(const char*, int, const char*) { stop("$finish"); }

// ------------------------------------------------------------------ bounded queue of link octets

class Ring {
public:
    explicit Ring(size_t size) : octets_(size) {}
    size_t level() const { return level_; }
    size_t room() const { return octets_.size() - level_; }
    uint8_t front() const { return octets_[begin_]; }

    void push(uint8_t octet) {
        octets_[(begin_ + level_) & (octets_.size() - 1)] = octet;
        ++level_;
    }
    void pop() {
        begin_ = (begin_ + 1) & (octets_.size() - 1);
        --level_;
    }

private:
    std::vector<uint8_t> octets_;  // a power of two
    size_t begin_ = 0, level_ = 0;
};

// ------------------------------------------------------------------ what Python sees

struct Feed {
    const uint8_t* data;
    const uint64_t* offsets;
    const uint32_t* captured;
    const uint32_t* original;
    const uint64_t* time_ns;
    const uint16_t* port;
    const uint8_t* flags;
    uint64_t first, count;
    uint32_t gap_octets;
    uint32_t room;          // throttle: wait while the snapshot FIFO has less room; 0 never waits
    uint64_t patience;      // throttle: give up after so many clocks without a link octet
};

struct Counters {
    uint64_t cycles, frames, octets, waited;
};

constexpr size_t RING = size_t(1) << 20;
constexpr unsigned QUIET = 16;  // clocks between octets of one burst, at most
constexpr size_t RING_RESERVE = size_t(1) << 16;

// ------------------------------------------------------------------ board

template <typename Pin>
static void assign(Pin& pin, const Beat& beat) {
    if constexpr (std::is_integral_v<Pin>) {
        uint64_t value = beat.words[0];
        if constexpr (PAYLOAD_WORDS == 2) value |= uint64_t(beat.words[1]) << 32;
        pin = static_cast<Pin>(value);
    } else {
        for (unsigned word = 0; word < PAYLOAD_WORDS; ++word) pin[word] = beat.words[word];
    }
}

class Board {
public:
    Board() : context_(std::make_unique<VerilatedContext>()),
              model_(std::make_unique<Model>(context_.get())), to_board_(RING), to_host_(RING) {
        reset();
    }
    ~Board() { model_->final(); }

    void reset() {
        idle_ports();
        model_->link_tx_ready = 0;
        model_->link_rx_valid = 0;
        model_->rst = 1;
        for (int clock = 0; clock < 4; ++clock) {
            model_->clk = 0;
            model_->eval();
            model_->clk = 1;
            model_->eval();
        }
        model_->rst = 0;
        model_->clk = 0;
        model_->eval();
        to_board_ = Ring(RING);
        to_host_ = Ring(RING);
    }

    void run(uint64_t cycles) {
        for (; cycles; --cycles) step();
    }

    // At most `cycles` until the first octet waits for the host; then on, while octets keep coming,
    // until `octets` of them wait.
    uint64_t run_until_output(uint64_t cycles, uint64_t octets) {
        uint64_t done = 0;
        for (; done < cycles && !to_host_.level(); ++done) step();
        if (octets > RING) octets = RING;
        for (unsigned quiet = 0; to_host_.level() && quiet < QUIET && to_host_.level() < octets;
             ++done) {
            const size_t before = to_host_.level();
            step();
            quiet = to_host_.level() == before ? quiet + 1 : 0;
        }
        return done;
    }

    // Frames one after another, on whatever port; gives the index of the first one not sent.
    uint64_t feed(const Feed& feed) {
        uint64_t index = feed.first;
        for (; index < feed.count; ++index) {
            if (feed.room && !wait_for_room(feed)) break;
            const uint16_t port = feed.port[index];
            if (feed.flags[index] & LOST_BEFORE) {
                lanes_[port].lost_marker();
                send(port);
            }
            begin(feed, index, port);
            send(port);
        }
        return index;
    }

    // All ports at once, each with its own frames in order.
    void feed_concurrently(const Feed& feed) {
        uint64_t next[PORTS];
        bool marked[PORTS] = {};
        for (auto& index : next) index = feed.first;
        for (bool any = true; any;) {
            any = false;
            for (unsigned port = 0; port < PORTS; ++port) {
                Lane& lane = lanes_[port];
                if (!lane.busy()) {
                    uint64_t& index = next[port];
                    while (index < feed.count && feed.port[index] != port) ++index;
                    if (index < feed.count) {
                        if (feed.flags[index] & LOST_BEFORE && !marked[port]) {
                            lane.lost_marker();
                            marked[port] = true;
                        } else {
                            begin(feed, index++, port);
                            marked[port] = false;
                        }
                    }
                }
                any |= lane.busy();
                drive(port);
            }
            if (any) step();
        }
        idle_ports();
    }

    size_t write(const uint8_t* octets, size_t size) {
        if (size > to_board_.room()) size = to_board_.room();
        for (size_t index = 0; index < size; ++index) to_board_.push(octets[index]);
        return size;
    }

    size_t read(uint8_t* octets, size_t size) {
        if (size > to_host_.level()) size = to_host_.level();
        for (size_t index = 0; index < size; ++index) {
            octets[index] = to_host_.front();
            to_host_.pop();
        }
        return size;
    }

    unsigned snapshot_level() const { return model_->snapshot_level; }
    unsigned snapshot_room() const { return model_->snapshot_room; }
    void set_time(uint64_t ns) { model_->time_ns = ns; }
    void follow_wall_clock(bool on) { wall_clock_ = on; }

    Counters counters{};
    std::string error;

private:
    void step() {
        Model& model = *model_;
        if (wall_clock_ && (counters.cycles & 63) == 0) model.time_ns = now();
        if ((model.link_rx_valid = to_board_.level() != 0)) model.link_rx_payload = to_board_.front();
        model.link_tx_ready = to_host_.room() != 0;
        model.clk = 0;
        model.eval();
        if (model.link_tx_valid && model.link_tx_ready) to_host_.push(model.link_tx_payload);
        if (model.link_rx_valid && model.link_rx_ready) to_board_.pop();
        model.clk = 1;
        model.eval();
        ++counters.cycles;
    }

    static uint64_t now() {
        timespec time;
        clock_gettime(CLOCK_REALTIME, &time);
        return uint64_t(time.tv_sec) * 1'000'000'000u + uint64_t(time.tv_nsec);
    }

    bool wait_for_room(const Feed& feed) {
        uint64_t quiet = 0;
        while (model_->snapshot_room < feed.room || to_host_.room() < RING_RESERVE) {
            if (to_host_.room() < RING_RESERVE || quiet >= feed.patience) return false;
            const size_t before = to_host_.level();
            step();
            ++counters.waited;
            quiet = to_host_.level() == before ? quiet + 1 : 0;
        }
        return true;
    }

    void begin(const Feed& feed, uint64_t index, uint16_t port) {
        lanes_[port].frame(feed.data + feed.offsets[index], feed.captured[index],
                           feed.original[index], feed.flags[index], feed.gap_octets);
        if (!wall_clock_) model_->time_ns = feed.time_ns[index];
        ++counters.frames;
        counters.octets += feed.captured[index];
    }

    void send(uint16_t port) {
        while (lanes_[port].busy()) {
            drive(port);
            step();
        }
        idle_ports();
    }

    void drive(unsigned port) {
        Beat beat;
        if (wall_clock_ && lanes_[port].starts()) model_->time_ns = now();
        const bool valid = lanes_[port].next(beat);
        switch (port) {
#define PORT(n)                                                            \
    case n:                                                                \
        if ((model_->frames_##n##_valid = valid))                          \
            assign(model_->frames_##n##_payload, beat);                    \
        break;
            FOR_EACH_PORT(PORT)
#undef PORT
        }
    }

    void idle_ports() {
#define PORT(n) model_->frames_##n##_valid = 0;
        FOR_EACH_PORT(PORT)
#undef PORT
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Model> model_;
    Lane lanes_[PORTS];
    Ring to_board_, to_host_;
    bool wall_clock_ = false;
};

// Runs `action`; a stop of the model becomes -1 and a message.
template <typename Action>
static int64_t guarded(Board* board, Action action) {
    try {
        return static_cast<int64_t>(action());
    } catch (const std::exception& error) {
        board->error = error.what();
        return -1;
    }
}

API Board* board_create() { return new Board(); }
API void board_destroy(Board* board) { delete board; }
API int64_t board_reset(Board* board) {
    return guarded(board, [&] { return board->reset(), 0; });
}
API int64_t board_run(Board* board, uint64_t cycles) {
    return guarded(board, [&] { return board->run(cycles), 0; });
}
API int64_t board_run_until_output(Board* board, uint64_t cycles, uint64_t octets) {
    return guarded(board, [&] { return board->run_until_output(cycles, octets); });
}
API int64_t board_feed(Board* board, const Feed* feed) {
    return guarded(board, [&] { return board->feed(*feed); });
}
API int64_t board_feed_concurrently(Board* board, const Feed* feed) {
    return guarded(board, [&] { return board->feed_concurrently(*feed), feed->count; });
}
API uint64_t board_write(Board* board, const uint8_t* octets, uint64_t size) {
    return board->write(octets, size);
}
API uint64_t board_read(Board* board, uint8_t* octets, uint64_t size) {
    return board->read(octets, size);
}
API uint32_t board_snapshot_level(Board* board) { return board->snapshot_level(); }
API uint32_t board_snapshot_room(Board* board) { return board->snapshot_room(); }
API void board_set_time(Board* board, uint64_t ns) { board->set_time(ns); }
API void board_follow_wall_clock(Board* board, int on) { board->follow_wall_clock(on); }
API void board_counters(Board* board, Counters* out) { *out = board->counters; }
API const char* board_error(Board* board) { return board->error.c_str(); }
