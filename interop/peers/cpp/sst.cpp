// The ADIOS2 half of the step rows: one writer or one reader of a stream, in the same words as
// role.go, so that both sides do the same work. It is compiled where the table is made.
//
//   sst writer NAME BYTES QUEUE SECONDS WARMUP
//   sst reader NAME BYTES QUEUE SECONDS WARMUP
//   sst version
//
// It puts and gets arrays of its own: this engine has no span to write into, and no view to read.
//
// The last line of stdout is a JSON object; a reader's counts what it took after WARMUP seconds.
// The end of stdin means that whoever started us is gone.

#include <adios2.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

using Clock = std::chrono::steady_clock;

struct Options
{
    std::string name;
    size_t elements;
    std::string queue;
    double seconds, warmup;
};

double since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// fill touches every byte. Element i of step s is s + i: the sum tells the step.
void fill(int64_t *data, size_t n, int64_t step)
{
    for (size_t i = 0; i < n; i++)
        data[i] = step + static_cast<int64_t>(i);
}

// sum touches every byte.
uint64_t sum(const int64_t *data, size_t n)
{
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++)
        s += static_cast<uint64_t>(data[i]);
    return s;
}

// expected is the sum of what fill writes, modulo 2^64.
uint64_t expected(uint64_t n, uint64_t step)
{
    const uint64_t triangle = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
    return n * step + triangle;
}

adios2::IO sst(adios2::ADIOS &adios, const Options &o, bool writer)
{
    adios2::IO io = adios.DeclareIO("bench");
    io.SetEngine("SST");
    io.SetParameter("DataTransport", "WAN");
    io.SetParameter("NetworkInterface", "lo");
    if (writer)
    {
        io.SetParameter("RendezvousReaderCount", "1");
        io.SetParameter("QueueLimit", o.queue);
    }
    else
        io.SetParameter("OpenTimeoutSecs", "30");
    return io;
}

void write(const Options &o)
{
    adios2::ADIOS adios;
    adios2::IO io = sst(adios, o, true);
    auto var = io.DefineVariable<int64_t>("x", {o.elements}, {0}, {o.elements});
    adios2::Engine engine = io.Open(o.name, adios2::Mode::Write);
    std::vector<int64_t> data(o.elements);
    int64_t step = 0;
    for (const auto start = Clock::now(); since(start) < o.warmup + o.seconds; step++)
    {
        engine.BeginStep();
        fill(data.data(), o.elements, step);
        engine.Put(var, data.data());
        engine.EndStep();
    }
    engine.Close();
    std::cout << "{\"steps\":" << step << "}" << std::endl;
}

// take reads one step and checks it.
bool take(adios2::IO &io, adios2::Engine &engine, std::vector<int64_t> &data)
{
    const uint64_t step = engine.CurrentStep();
    auto var = io.InquireVariable<int64_t>("x");
    if (!var || var.Shape() != adios2::Dims{data.size()})
        throw std::runtime_error("the step has no variable x of the right shape");
    var.SetSelection({{0}, {data.size()}});
    engine.Get(var, data.data());
    engine.PerformGets();
    const bool good = sum(data.data(), data.size()) == expected(data.size(), step);
    engine.EndStep();
    return good;
}

void read(const Options &o)
{
    adios2::ADIOS adios;
    adios2::IO io = sst(adios, o, false);
    adios2::Engine engine = io.Open(o.name, adios2::Mode::Read);
    std::vector<int64_t> data(o.elements);
    int64_t steps = 0, bad = 0;
    bool warm = false;
    Clock::time_point start, from, to;
    for (bool first = true; engine.BeginStep() == adios2::StepStatus::OK; first = false)
    {
        bad += !take(io, engine, data);
        to = Clock::now();
        if (first)
            start = to;
        if (warm)
            steps++;
        else if (std::chrono::duration<double>(to - start).count() >= o.warmup)
        {
            warm = true;
            from = to;
        }
    }
    engine.Close();
    const double seconds = warm ? std::chrono::duration<double>(to - from).count() : 0;
    std::cout << "{\"steps\":" << steps << ",\"bad\":" << bad << ",\"seconds\":" << seconds << "}" << std::endl;
}

// watch ends the process with its parent.
void watch()
{
    char c;
    while (::read(0, &c, 1) > 0)
    {
    }
    std::_Exit(3);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && std::string(argv[1]) == "version")
    {
        std::cout << ADIOS2_VERSION_STR << std::endl;
        return 0;
    }
    if (argc != 7)
    {
        std::cerr << "usage: sst writer|reader NAME BYTES QUEUE SECONDS WARMUP" << std::endl;
        return 2;
    }
    const Options o{argv[2], std::stoul(argv[3]) / sizeof(int64_t), argv[4], std::stod(argv[5]), std::stod(argv[6])};
    std::thread(watch).detach();
    try
    {
        std::string(argv[1]) == "writer" ? write(o) : read(o);
    }
    catch (const std::exception &e)
    {
        std::cerr << "sst " << argv[1] << ": " << e.what() << std::endl;
        return 1;
    }
    return 0;
}
