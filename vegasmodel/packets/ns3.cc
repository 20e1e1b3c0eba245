// One run of ns-3: reads the network as numbers from run.txt, writes result.txt, drops.txt and
// rtt.txt.  The formats of the three are those that ns2.tcl writes.
#include "ns3_rate_delay.h"

#include "ns3/core-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace ns3;

namespace
{

FILE* g_result;
FILE* g_drops;
FILE* g_rtt; // null: not recorded

double
Clock()
{
    return Simulator::Now().GetSeconds();
}

// Without link and network headers; p as it is on a link.
Ptr<Packet>
Segment(Ptr<const Packet> p)
{
    Ptr<Packet> q = p->Copy();
    PppHeader ppp;
    Ipv4Header ip;
    q->RemoveHeader(ppp);
    q->RemoveHeader(ip);
    return q;
}

void
NoteDrop(int link, int reverse, Ptr<Packet> segment)
{
    TcpHeader tcp;
    segment->RemoveHeader(tcp);
    uint32_t size = segment->GetSize();
    if (size > 0) // data, not an ACK
    {
        uint32_t number = (tcp.GetSequenceNumber().GetValue() - 1) / size;
        int flow = tcp.GetDestinationPort() - 1;
        std::fprintf(g_drops, "d %.17g %d %d tcp 0 - %d 0 0 %u 0\n", Clock(), link, reverse, flow, number);
    }
}

// What waits at one direction of a link, and what leaves it.
class Meter
{
  public:
    void Attach(int link, int reverse, Ptr<PointToPointNetDevice> device, Ptr<QueueDisc> disc)
    {
        m_link = link;
        m_reverse = reverse;
        device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Meter::Left, this));
        auto queue = device->GetQueue();
        queue->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Meter::Waits, this));
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&Meter::Dropped, this));
        if (disc)
        {
            disc->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Meter::Waits, this));
            disc->TraceConnectWithoutContext("Drop", MakeCallback(&Meter::DroppedItem, this));
        }
    }

    void Count(const char* label)
    {
        std::fprintf(g_result,
                     "link %d forward %s %.17g %.17g %" PRIu64 " %" PRIu64 "\n",
                     m_link,
                     label,
                     Clock(),
                     Integral(),
                     m_packets,
                     m_bytes);
    }

    void Sample()
    {
        double integral = Integral();
        std::fprintf(g_result, " %d %.17g", m_waiting, integral);
        std::fprintf(g_result, " %" PRIu64 " %" PRIu64, m_packets, m_bytes);
    }

    void Dropped(Ptr<const Packet> p)
    {
        NoteDrop(m_link, m_reverse, Segment(p));
    }

  private:
    double Integral()
    {
        m_integral += m_waiting * (Clock() - m_since);
        m_since = Clock();
        return m_integral;
    }

    void Waits(uint32_t before, uint32_t after)
    {
        Integral();
        m_waiting += int(after) - int(before);
    }

    void Left(Ptr<const Packet> p)
    {
        m_packets++;
        m_bytes += p->GetSize();
    }

    void DroppedItem(Ptr<const QueueDiscItem> item)
    {
        NoteDrop(m_link, m_reverse, item->GetPacket()->Copy());
    }

    int m_link = 0;
    int m_reverse = 0;
    int m_waiting = 0;
    double m_integral = 0.0;
    double m_since = 0.0;
    uint64_t m_packets = 0;
    uint64_t m_bytes = 0;
};

// Random loss of data packets.
class DataLoss : public ErrorModel
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id =
            TypeId("vegasmodel::DataLoss").SetParent<ErrorModel>().AddConstructor<DataLoss>();
        return id;
    }

    double probability = 0.0;
    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();

  private:
    bool DoCorrupt(Ptr<Packet> p) override
    {
        TcpHeader tcp;
        Ptr<Packet> segment = Segment(p);
        segment->RemoveHeader(tcp);
        return segment->GetSize() > 0 && random->GetValue() < probability;
    }

    void DoReset() override
    {
    }
};

// One direction of a link as run.txt describes it.
struct Shape
{
    double bits, delay, loss;
    uint32_t limit; // packets that can wait
    int kind;       // 0 drop-tail, 1 RED, 2 Rate-Delay services
    double low, high, most, weight; // RED
    int ecn, gentle;
    double size;    // mean bytes of a packet, for RED's idle times
    double k;       // Rate-Delay services
    uint32_t limitR, limitD;
};

// The packet that waits in the device is chosen before the link is idle.  So drop-tail and
// Rate-Delay services are queues of the device itself; RED is ns-3's queue disc, before a device
// that holds one packet.
void
Equip(const Shape& s, int link, int reverse, Ptr<NetDevice> plain, Ptr<NetDevice> far, Meter& meter)
{
    auto device = DynamicCast<PointToPointNetDevice>(plain);
    Ptr<QueueDisc> disc;
    if (s.kind == 2)
    {
        auto queue = CreateObject<RateDelayQueue>();
        queue->Configure(s.k, s.limitR, s.limitD);
        device->SetQueue(queue);
    }
    else
    {
        uint32_t limit = s.kind == 1 ? 1 : s.limit;
        device->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, limit));
    }
    if (s.kind == 1)
    {
        TrafficControlHelper control;
        control.SetRootQueueDisc("ns3::RedQueueDisc",
                                 "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, s.limit - 1)),
                                 "MinTh", DoubleValue(s.low),
                                 "MaxTh", DoubleValue(s.high),
                                 "LInterm", DoubleValue(1.0 / s.most),
                                 "QW", DoubleValue(s.weight),
                                 "UseEcn", BooleanValue(s.ecn),
                                 "Gentle", BooleanValue(s.gentle),
                                 "MeanPktSize", UintegerValue(uint32_t(s.size)),
                                 "LinkBandwidth", DataRateValue(DataRate(uint64_t(s.bits))),
                                 "LinkDelay", TimeValue(Seconds(s.delay)));
        disc = control.Install(device).Get(0);
    }
    meter.Attach(link, reverse, device, disc);
    if (s.loss > 0)
    {
        auto loss = CreateObject<DataLoss>();
        loss->probability = s.loss;
        auto end = DynamicCast<PointToPointNetDevice>(far);
        end->SetReceiveErrorModel(loss);
        end->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&Meter::Dropped, &meter));
    }
}

// Two nodes joined, addresses base + 1 and base + 2; returns the devices.
NetDeviceContainer
Join(Ptr<Node> a, Ptr<Node> b, double bits, double delay, uint32_t base, bool control)
{
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(std::llround(bits)))));
    helper.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000000p"));
    if (!control)
    {
        helper.DisableFlowControl();
    }
    NetDeviceContainer devices = helper.Install(a, b);
    for (uint32_t i = 0; i < 2; i++) // not Ipv4AddressHelper, which adds a queue disc of its own
    {
        auto ipv4 = devices.Get(i)->GetNode()->GetObject<Ipv4>();
        uint32_t number = ipv4->AddInterface(devices.Get(i));
        ipv4->AddAddress(number, Ipv4InterfaceAddress(Ipv4Address(base + 1 + i), Ipv4Mask("/30")));
        ipv4->SetUp(number);
    }
    return devices;
}

Ptr<Ipv4StaticRouting>
Routes(Ptr<Node> node)
{
    return Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<Ipv4>());
}

// ns-3.37 takes the class's mark from the address to which a socket connects and forgets another;
// later versions take it from the socket.
template <typename Address>
auto
Mark(Address& address, uint8_t tos, int) -> decltype(address.SetTos(tos))
{
    address.SetTos(tos);
}

template <typename Address>
void
Mark(Address&, uint8_t, long)
{
}

// One flow as run.txt describes it.
struct Plan
{
    int law; // 0 vegas, 1 newreno and sack, 2 reno
    int from, to;
    double bits, leg;
    uint32_t segment;
    double start, stop, first;
    int64_t packets; // -1: without end
    uint32_t window, every, ecn, tos, alpha, beta, gamma;
};

// A connection: source, sink, and what is counted of it.
class Connection
{
  public:
    void Place(int f, const Plan& plan, Ptr<Node> source, Ptr<Node> sink, Ipv4Address to)
    {
        m_f = f;
        m_plan = plan;
        m_source = source;
        m_peer = to;
        m_listener = Make(sink);
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), f + 1));
        m_listener->SetIpTos(plan.tos);
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Connection::Accept, this));
        Simulator::Schedule(Seconds(plan.first), &Connection::Count, this, "first");
        Simulator::Schedule(Seconds(plan.start), &Connection::Start, this);
        Simulator::Schedule(Seconds(plan.stop), &Connection::Count, this, "last");
        Simulator::Schedule(Seconds(plan.stop), &Connection::Stop, this);
    }

    void Sample()
    {
        std::fprintf(g_result, " %.9g", m_window / m_plan.segment);
        std::fprintf(g_result, " %" PRIi64 " %" PRIi64 " %" PRIi64, m_acked, m_again, m_sent);
    }

  private:
    Ptr<TcpSocketBase> Make(Ptr<Node> node)
    {
        auto socket = DynamicCast<TcpSocketBase>(Socket::CreateSocket(node, TcpSocketFactory::GetTypeId()));
        uint32_t room = m_plan.window * m_plan.segment;
        socket->SetAttribute("SegmentSize", UintegerValue(m_plan.segment));
        socket->SetAttribute("SndBufSize", UintegerValue(room + 2 * RESERVE * m_plan.segment));
        socket->SetAttribute("RcvBufSize", UintegerValue(room + m_plan.segment - 1));
        socket->SetAttribute("InitialCwnd", UintegerValue(m_plan.law == 0 ? 2 : 1));
        socket->SetAttribute("DelAckCount", UintegerValue(m_plan.every));
        socket->SetAttribute("Timestamp", BooleanValue(false)); // they count in milliseconds
        socket->SetAttribute("UseEcn", EnumValue(m_plan.ecn ? TcpSocketState::On : TcpSocketState::Off));
        socket->SetMinRto(MilliSeconds(200));
        socket->SetRecoveryAlgorithm(CreateObject<TcpClassicRecovery>());
        return socket;
    }

    Ptr<TcpCongestionOps> Law() const
    {
        if (m_plan.law == 1)
        {
            return CreateObject<TcpNewReno>();
        }
        if (m_plan.law == 2)
        {
            return CreateObject<TcpLinuxReno>();
        }
        auto vegas = CreateObject<TcpVegas>();
        vegas->SetAttribute("Alpha", UintegerValue(m_plan.alpha));
        vegas->SetAttribute("Beta", UintegerValue(m_plan.beta));
        vegas->SetAttribute("Gamma", UintegerValue(m_plan.gamma));
        return vegas;
    }

    void Start()
    {
        m_socket = Make(m_source);
        m_socket->SetCongestionControlAlgorithm(Law());
        m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), m_f + 1));
        m_socket->SetIpTos(m_plan.tos);
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Connection::Sent, this));
        m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&Connection::Came, this));
        m_socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Connection::Window, this));
        m_socket->SetConnectCallback(MakeCallback(&Connection::Fill, this), MakeNullCallback<void, Ptr<Socket>>());
        InetSocketAddress to(m_peer, m_f + 1);
        Mark(to, m_plan.tos, 0);
        m_socket->Connect(to);
    }

    // From here on nothing leaves the source.
    void Stop()
    {
        m_over = true;
        m_source->GetObject<Ipv4>()->SetDown(1);
    }

    // The socket always has RESERVE packets that were not sent yet, so that the window decides.
    void Fill(Ptr<Socket>)
    {
        while (!m_over && m_offered < m_highest + RESERVE)
        {
            int64_t more = RESERVE;
            if (m_plan.packets >= 0)
            {
                more = std::min(more, m_plan.packets - m_offered);
            }
            if (more == 0 || m_socket->Send(Create<Packet>(more * m_plan.segment), 0) < 0)
            {
                break;
            }
            m_offered += more;
        }
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        socket->SetRecvCallback(MakeCallback(&Connection::Receive, this));
    }

    void Receive(Ptr<Socket> socket)
    {
        while (socket->Recv())
        {
        }
    }

    int64_t Number(SequenceNumber32 edge, int64_t near) const // packets before this octet
    {
        uint32_t here = 1 + uint32_t(near * m_plan.segment);
        return near + int32_t(edge.GetValue() - here) / int64_t(m_plan.segment);
    }

    void Sent(Ptr<const Packet> p, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        if (m_over || p->GetSize() == 0)
        {
            return;
        }
        int64_t number = Number(header.GetSequenceNumber(), m_highest);
        m_sent++;
        m_again += number < m_highest;
        m_highest = std::max(m_highest, number + 1);
        if (g_rtt)
        {
            std::fprintf(g_rtt, "+ %.17g %d 0 0 0 0 0 0 0 %" PRIi64 " 0\n", Clock(), m_f, number);
        }
        if (m_offered < m_highest + RESERVE / 2)
        {
            Simulator::ScheduleNow(&Connection::Fill, this, Ptr<Socket>());
        }
    }

    void Came(Ptr<const Packet>, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        int64_t acked = Number(header.GetAckNumber(), m_acked);
        if (m_over || !(header.GetFlags() & TcpHeader::ACK) || acked < 1)
        {
            return;
        }
        if (g_rtt)
        {
            std::fprintf(g_rtt, "r %.17g %d 0 0 0 0 0 0 0 %" PRIi64 " 0\n", Clock(), m_f, acked - 1);
        }
        m_acked = std::max(m_acked, acked);
        if (m_acked == m_plan.packets)
        {
            m_over = true;
            std::fprintf(g_result, "done %d %.17g\n", m_f, Clock());
        }
    }

    void Window(uint32_t, uint32_t now)
    {
        m_window = now;
    }

    void Count(const char* label)
    {
        std::fprintf(g_result, "flow %d %s %.17g", m_f, label, Clock());
        std::fprintf(g_result, " %" PRIi64 " %" PRIi64 " %" PRIi64 "\n", m_acked, m_again, m_sent);
    }

    static constexpr int64_t RESERVE = 64; // packets

    int m_f = 0;
    Plan m_plan{};
    Ptr<Node> m_source;
    Ipv4Address m_peer;
    Ptr<TcpSocketBase> m_socket, m_listener;
    bool m_over = false;
    int64_t m_offered = 0, m_sent = 0, m_again = 0, m_highest = 0, m_acked = 0; // packets
    double m_window = 0.0;                                                      // bytes
};

// The routers stand in a row, link i from router i to router i + 1.
class Network
{
  public:
    void Read(std::istream& in)
    {
        std::string word;
        while (in >> word)
        {
            if (word == "run")
            {
                in >> m_seed >> m_warmup >> m_duration >> m_interval >> m_rtts;
            }
            else if (word == "link")
            {
                Shape s{};
                int reverse;
                in >> reverse >> s.bits >> s.delay >> s.loss >> s.limit >> s.kind >> s.low >> s.high;
                in >> s.most >> s.weight >> s.ecn >> s.gentle >> s.size >> s.k >> s.limitR >> s.limitD;
                m_shapes[reverse].push_back(s);
            }
            else if (word == "flow")
            {
                Plan p{};
                in >> p.law >> p.from >> p.to >> p.bits >> p.leg >> p.segment >> p.start >> p.stop;
                in >> p.first >> p.packets >> p.window >> p.every >> p.ecn >> p.tos;
                in >> p.alpha >> p.beta >> p.gamma;
                m_plans.push_back(p);
            }
            if (!in || (word != "run" && word != "link" && word != "flow"))
            {
                throw std::runtime_error("run.txt cannot be read");
            }
        }
    }

    void Build()
    {
        RngSeedManager::SetSeed(m_seed);
        InternetStackHelper stack;
        Ipv4StaticRoutingHelper routing;
        stack.SetRoutingHelper(routing);
        stack.SetIpv6StackInstall(false);
        size_t n = m_shapes[0].size();
        m_routers.Create(n + 1);
        m_hosts.Create(2 * m_plans.size());
        stack.Install(m_routers);
        stack.Install(m_hosts);
        m_meters.resize(2 * n);
        m_connections.resize(m_plans.size());
        for (size_t f = 0; f < m_plans.size(); f++)
        {
            Connect(f);
        }
        for (size_t i = 0; i < n; i++)
        {
            Link(i);
        }
    }

    void Run()
    {
        Simulator::Schedule(Seconds(m_warmup), &Network::Count, this, "first");
        Simulator::Schedule(Seconds(m_duration), &Network::Count, this, "last");
        int number = std::max(1, int(std::ceil(m_duration / m_interval * (1 - 1e-9))));
        for (int j = 0; j <= number; j++)
        {
            double time = j < number ? j * m_interval : m_duration;
            Simulator::Schedule(Seconds(time), &Network::Sample, this);
        }
        Simulator::Stop(Seconds(m_duration));
        Simulator::Run();
        std::fprintf(g_result, "end\n");
    }

    bool Rtts() const
    {
        return m_rtts;
    }

  private:
    static const uint32_t HOSTS = 10u << 24; // networks of four addresses each
    static const uint32_t LINKS = 11u << 24;

    static uint32_t Base(size_t f, int side)
    {
        return HOSTS + 8 * f + 4 * side;
    }

    void Connect(size_t f)
    {
        const Plan& p = m_plans[f];
        for (int side : {0, 1})
        {
            Ptr<Node> host = m_hosts.Get(2 * f + side);
            Join(host, m_routers.Get(side ? p.to : p.from), p.bits, p.leg, Base(f, side), false);
            Routes(host)->SetDefaultRoute(Ipv4Address(Base(f, side) + 2), 1);
        }
        m_connections[f].Place(f, p, m_hosts.Get(2 * f), m_hosts.Get(2 * f + 1), Ipv4Address(Base(f, 1) + 1));
    }

    void Link(size_t i)
    {
        const Shape &there = m_shapes[0][i], &back = m_shapes[1][i];
        Ptr<Node> left = m_routers.Get(i), right = m_routers.Get(i + 1);
        uint32_t base = LINKS + 4 * i;
        auto devices = Join(left, right, there.bits, there.delay, base, there.kind == 1);
        Equip(there, i, 0, devices.Get(0), devices.Get(1), m_meters[2 * i]);
        Equip(back, i, 1, devices.Get(1), devices.Get(0), m_meters[2 * i + 1]);
        // To the right by default, to each host on the left by its own route.
        uint32_t out = left->GetObject<Ipv4>()->GetNInterfaces() - 1;
        Routes(left)->SetDefaultRoute(Ipv4Address(base + 2), out);
        uint32_t home = right->GetObject<Ipv4>()->GetNInterfaces() - 1;
        bool last = i + 1 == m_shapes[0].size();
        if (last)
        {
            Routes(right)->SetDefaultRoute(Ipv4Address(base + 1), home);
            return;
        }
        for (size_t f = 0; f < m_plans.size(); f++)
        {
            for (int side : {0, 1})
            {
                if (size_t(side ? m_plans[f].to : m_plans[f].from) <= i)
                {
                    Ipv4Address host(Base(f, side) + 1);
                    Routes(right)->AddHostRouteTo(host, Ipv4Address(base + 1), home);
                }
            }
        }
    }

    void Count(const char* label)
    {
        for (size_t i = 0; i < m_meters.size(); i += 2)
        {
            m_meters[i].Count(label);
        }
    }

    void Sample()
    {
        std::fprintf(g_result, "sample %.17g", Clock());
        for (Connection& connection : m_connections)
        {
            connection.Sample();
        }
        for (size_t i = 0; i < m_meters.size(); i += 2)
        {
            m_meters[i].Sample();
        }
        std::fprintf(g_result, "\n");
    }

    uint32_t m_seed = 1;
    double m_warmup = 0.0, m_duration = 0.0, m_interval = 0.0;
    bool m_rtts = false;
    std::vector<Shape> m_shapes[2]; // of the links forward and back
    std::vector<Plan> m_plans;
    NodeContainer m_routers, m_hosts;
    std::vector<Meter> m_meters; // two a link
    std::vector<Connection> m_connections;
};

} // namespace

int
main()
{
    try
    {
        std::ifstream in("run.txt");
        Network network;
        network.Read(in);
        g_result = std::fopen("result.txt", "w");
        g_drops = std::fopen("drops.txt", "w");
        g_rtt = network.Rtts() ? std::fopen("rtt.txt", "w") : nullptr;
        if (!g_result || !g_drops || (network.Rtts() && !g_rtt))
        {
            throw std::runtime_error("the results cannot be written");
        }
        network.Build();
        network.Run();
        for (FILE* file : {g_result, g_drops, g_rtt})
        {
            if (file && std::fclose(file))
            {
                throw std::runtime_error("the results cannot be written");
            }
        }
        Simulator::Destroy();
    }
    catch (const std::exception& error)
    {
        std::cerr << error.what() << "\n";
        return 1;
    }
    return 0;
}
