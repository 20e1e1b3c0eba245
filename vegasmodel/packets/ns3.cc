// One run of ns-3: reads the network as numbers from run.txt, and writes result.txt, drops.txt and
// rtt.txt in the same formats as ns2.tcl.
#include "ns3_connection.h"

#include "ns3/core-module.h"

#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

namespace
{

// Joins two nodes by a link with addresses base + 1 and base + 2; returns the devices.
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
                in >> p.first >> p.packets >> p.window >> p.every >> p.wait >> p.each >> p.ecn >> p.tos;
                in >> p.alpha >> p.beta >> p.gamma >> p.initial;
                m_plans.push_back(p);
            }
            else if (word == "short")
            {
                Short s{};
                in >> s.crowd >> s.start >> s.packets;
                m_shorts.push_back(s);
            }
            if (!in || (word != "run" && word != "link" && word != "flow" && word != "short"))
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
        m_connections.resize(m_plans.size() + m_shorts.size());
        for (size_t f = 0; f < m_plans.size(); f++)
        {
            Connect(f);
            g_flows.push_back(f);
        }
        for (const Short& s : m_shorts)
        {
            size_t f = g_flows.size();
            m_connections[f].Serve(f, s.start, s.packets, m_connections.at(s.crowd));
            g_flows.push_back(s.crowd);
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
            Ptr<Node> router = m_routers.Get(side ? p.to : p.from);
            auto devices = Join(host, router, p.bits, p.leg, Base(f, side), false);
            if (side == 0 && p.each > 0)
            {
                WaitingChannel::Between(DynamicCast<PointToPointNetDevice>(devices.Get(0)),
                                        DynamicCast<PointToPointNetDevice>(devices.Get(1)), p.leg, p.each);
            }
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
        // Packets go to the right by default; each host on the left has a route of its own.
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
        for (size_t f = 0; f < m_plans.size(); f++)
        {
            m_connections[f].Sample();
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
    std::vector<Short> m_shorts;
    NodeContainer m_routers, m_hosts;
    std::vector<Meter> m_meters; // two a link
    std::vector<Connection> m_connections; // flows and crowds as planned, then short flows
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
            const bool failed = file && std::ferror(file); // an earlier write; fclose forgets it
            if (file && (std::fclose(file) || failed))
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
