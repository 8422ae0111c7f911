// The ADIOS2 half of the step rows: one writer or one reader of a stream, in the same words as
// role.go, so that both sides do the same work. It is compiled where the table is made.
//
//   sst writer NAME BYTES QUEUE SECONDS WARMUP VARS PLANE
//   sst reader NAME BYTES QUEUE SECONDS WARMUP VARS PLANE
//   sst version
//
// A step has VARS variables of equal size, BYTES together. PLANE is the DataTransport. Compiled with USE_MPI it is a rank under
// mpirun: each writes or reads its share of every variable.
//
// It puts and gets arrays of its own: this engine has no span to write into, and no view to read.
//
// The last line of stdout is a JSON object, from rank 0: the steps after WARMUP seconds, what time they took of the wall and of
// the processors, and the most memory that a rank had resident. The end of stdin means that whoever started us is gone.

#include <adios2.h>

#ifdef USE_MPI
#include <mpi.h>
#endif

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

using Clock = std::chrono::steady_clock;

#ifdef USE_MPI
int rank, ranks;
// agreed is rank 0's answer, on all ranks.
bool agreed(bool value)
{
    int word = value;
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return word != 0;
}
// total and most are of all ranks, on rank 0.
double total(double value)
{
    double sum = 0;
    MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return sum;
}
uint64_t most(uint64_t value)
{
    uint64_t max = 0;
    MPI_Reduce(&value, &max, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    return max;
}
#define ADIOS_ARGUMENT (MPI_COMM_WORLD)
#else
const int rank = 0, ranks = 1;
bool agreed(bool value) { return value; }
double total(double value) { return value; }
uint64_t most(uint64_t value) { return value; }
#define ADIOS_ARGUMENT
#endif

struct Options
{
    std::string name;
    size_t elements; // of each variable
    std::string queue;
    double seconds, warmup;
    size_t variables;
    std::string plane;

    size_t from() const { return elements * rank / ranks; } // our share
    size_t count() const { return elements * (rank + 1) / ranks - from(); }
    std::string variable(size_t v) const { return "x" + std::to_string(v); }
};

double since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// processorTime is what this process has used, in seconds.
double processorTime()
{
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

// peakMemory is the most that was resident, in bytes.
uint64_t peakMemory()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0)
            return std::stoull(line.substr(6)) << 10;
    return 0;
}

// Count counts steps whose end it is told, as the type clock of clock.go.
struct Count
{
    double warmup;
    bool begun = false, warm = false;
    Clock::time_point start, from, to;
    int64_t steps = 0, bad = 0;
    double cpu = 0;

    explicit Count(double warmup) : warmup(warmup) {}

    void tick()
    {
        to = Clock::now();
        if (!begun)
            start = to;
        begun = true;
        if (warm)
            steps++;
        else if (std::chrono::duration<double>(to - start).count() >= warmup)
        {
            warm = true;
            from = to;
            cpu = processorTime();
        }
    }

    // say is called after the last step, by all ranks.
    void say() const
    {
        const double used = total(steps > 0 ? processorTime() - cpu : 0);
        const uint64_t memory = most(peakMemory());
        const double wrong = total(static_cast<double>(bad));
        const double seconds = warm ? std::chrono::duration<double>(to - from).count() : 0;
        if (rank == 0)
            std::cout << "{\"steps\":" << steps << ",\"bad\":" << static_cast<int64_t>(wrong) << ",\"seconds\":" << seconds << ",\"cpu\":" << used
                      << ",\"memory\":" << memory << "}" << std::endl;
    }
};

// fill touches every byte. Element i of step s is s + i: the sum tells the step.
void fill(int64_t *data, size_t n, int64_t first)
{
    for (size_t i = 0; i < n; i++)
        data[i] = first + static_cast<int64_t>(i);
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
uint64_t expected(uint64_t n, uint64_t first)
{
    const uint64_t triangle = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
    return n * first + triangle;
}

adios2::IO sst(adios2::ADIOS &adios, const Options &o, bool writer)
{
    adios2::IO io = adios.DeclareIO("bench");
    io.SetEngine("SST");
    io.SetParameter("DataTransport", o.plane);
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
    adios2::ADIOS adios ADIOS_ARGUMENT;
    adios2::IO io = sst(adios, o, true);
    std::vector<adios2::Variable<int64_t>> vars;
    for (size_t v = 0; v < o.variables; v++)
        vars.push_back(io.DefineVariable<int64_t>(o.variable(v), {o.elements}, {o.from()}, {o.count()}));
    adios2::Engine engine = io.Open(o.name, adios2::Mode::Write);
    std::vector<int64_t> data(o.variables * o.count());
    Count count(o.warmup);
    int64_t step = 0;
    for (const auto start = Clock::now(); agreed(since(start) < o.warmup + o.seconds); step++)
    {
        engine.BeginStep();
        for (size_t v = 0; v < o.variables; v++)
        {
            int64_t *part = data.data() + v * o.count();
            fill(part, o.count(), step + static_cast<int64_t>(o.from()));
            engine.Put(vars[v], part);
        }
        engine.EndStep();
        count.tick();
    }
    count.say();
    engine.Close();
}

// take reads our share of one step and checks it.
bool take(adios2::IO &io, adios2::Engine &engine, const Options &o, std::vector<int64_t> &data)
{
    const uint64_t step = engine.CurrentStep();
    for (size_t v = 0; v < o.variables; v++)
    {
        auto var = io.InquireVariable<int64_t>(o.variable(v));
        if (!var || var.Shape() != adios2::Dims{o.elements})
            throw std::runtime_error("the step has no variable " + o.variable(v) + " of the right shape");
        var.SetSelection({{o.from()}, {o.count()}});
        engine.Get(var, data.data() + v * o.count());
    }
    engine.PerformGets();
    bool good = true;
    for (size_t v = 0; v < o.variables; v++)
        good = sum(data.data() + v * o.count(), o.count()) == expected(o.count(), step + o.from()) && good;
    engine.EndStep();
    return good;
}

void read(const Options &o)
{
    adios2::ADIOS adios ADIOS_ARGUMENT;
    adios2::IO io = sst(adios, o, false);
    adios2::Engine engine = io.Open(o.name, adios2::Mode::Read);
    std::vector<int64_t> data(o.variables * o.count());
    Count count(o.warmup);
    while (engine.BeginStep() == adios2::StepStatus::OK)
    {
        count.bad += !take(io, engine, o, data);
        count.tick();
    }
    count.say();
    engine.Close();
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
    if (argc != 9)
    {
        std::cerr << "usage: sst writer|reader NAME BYTES QUEUE SECONDS WARMUP VARS PLANE" << std::endl;
        return 2;
    }
    const size_t variables = std::stoul(argv[7]);
    const Options o{argv[2], std::stoul(argv[3]) / sizeof(int64_t) / variables, argv[4], std::stod(argv[5]), std::stod(argv[6]), variables, argv[8]};
#ifdef USE_MPI
    // Threads of SST call no MPI, but ADIOS2 wants to be allowed to.
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#endif
    // mpirun gives its stdin to rank 0, and to the others none.
    if (rank == 0)
        std::thread(watch).detach();
    int code = 0;
    try
    {
        std::string(argv[1]) == "writer" ? write(o) : read(o);
    }
    catch (const std::exception &e)
    {
        std::cerr << "sst " << argv[1] << ": " << e.what() << std::endl;
        code = 1;
    }
#ifdef USE_MPI
    if (code != 0)
        MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Finalize();
#endif
    return code;
}
