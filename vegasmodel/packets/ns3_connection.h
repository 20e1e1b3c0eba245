// One flow: its sockets, what they send, and what is counted.
#pragma once

#include "ns3_link.h"
#include "ns3_wait.h"

namespace
{

// ns-3.37 takes the TOS field from the address to which a socket connects, and ignores a value that
// was set on the socket.  Later versions take it from the socket.
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
    int law; // 0 vegas, 1 newreno and sack, 2 reno, 3 cubic
    int from, to;
    double bits, leg;
    uint32_t segment;
    double start, stop, first;
    int64_t packets; // -1: without end; 0: a crowd, whose short flows come one by one
    uint32_t window, every;
    double wait; // longest random wait before the source uses an open window, s
    double each; // longest random wait of each packet below TCP, s
    uint32_t ecn, tos, alpha, beta, gamma, initial;
};

// One short flow of a crowd, which is a group of short flows that arrive at random.
struct Short
{
    size_t crowd;
    double start;
    int64_t packets;
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
        m_sink = sink;
        m_peer = to;
        Simulator::Schedule(Seconds(plan.first), &Connection::Count, this, "first");
        if (plan.packets == 0)
        {
            m_window = NAN; // there is none of the whole crowd
        }
        else
        {
            Listen();
            Simulator::Schedule(Seconds(plan.start), &Connection::Start, this);
        }
        Simulator::Schedule(Seconds(plan.stop), &Connection::Count, this, "last");
        Simulator::Schedule(Seconds(plan.stop), &Connection::Stop, this);
    }

    // Makes this a short flow of a crowd, between the crowd's two hosts.  Its packets are added to
    // the crowd's counters.
    void Serve(int f, double start, int64_t packets, Connection& crowd)
    {
        m_f = f;
        m_plan = crowd.m_plan;
        m_plan.start = start;
        m_plan.packets = packets;
        m_source = crowd.m_source;
        m_sink = crowd.m_sink;
        m_peer = crowd.m_peer;
        m_crowd = &crowd;
        Simulator::Schedule(Seconds(start), &Connection::Begin, this);
    }

    void Sample()
    {
        std::fprintf(g_result, " %.9g", m_window / m_plan.segment);
        std::fprintf(g_result, " %" PRIi64 " %" PRIi64 " %" PRIi64, m_acked, m_again, m_sent);
    }

  private:
    Ptr<TcpSocketBase> Make(Ptr<Node> node, double wait)
    {
        auto socket = WaitingSocket::On(node, wait);
        uint32_t room = m_plan.window * m_plan.segment;
        socket->SetAttribute("SegmentSize", UintegerValue(m_plan.segment));
        socket->SetAttribute("SndBufSize", UintegerValue(room + 2 * RESERVE * m_plan.segment));
        socket->SetAttribute("RcvBufSize", UintegerValue(room + m_plan.segment - 1));
        socket->SetAttribute("InitialCwnd", UintegerValue(m_plan.initial));
        socket->SetAttribute("DelAckCount", UintegerValue(m_plan.every));
        socket->SetAttribute("Timestamp", BooleanValue(false)); // they count in milliseconds
        socket->SetAttribute("UseEcn", EnumValue(m_plan.ecn ? TcpSocketState::On : TcpSocketState::Off));
        // A timeout is the mean RTT plus at least 200 ms, as in Linux.  ns-3 does not restart the
        // timer when it retransmits, so without this margin every fast retransmission would be
        // followed by a timeout.
        socket->SetAttribute("ClockGranularity", TimeValue(MilliSeconds(200)));
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
        if (m_plan.law == 3)
        {
            return CreateObject<TcpCubic>();
        }
        auto vegas = CreateObject<TcpVegas>();
        vegas->SetAttribute("Alpha", UintegerValue(m_plan.alpha));
        vegas->SetAttribute("Beta", UintegerValue(m_plan.beta));
        vegas->SetAttribute("Gamma", UintegerValue(m_plan.gamma));
        return vegas;
    }

    void Listen()
    {
        m_listener = Make(m_sink, 0.0);
        m_listener->SetCongestionControlAlgorithm(CreateObject<TcpNewReno>()); // it only sends ACKs
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), m_f + 1));
        m_listener->SetIpTos(m_plan.tos);
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Connection::Accept, this));
    }

    // Makes the listener only when the flow starts, because a host searches its listeners for each
    // packet.
    void Begin()
    {
        Listen();
        Start();
    }

    void Start()
    {
        m_socket = Make(m_source, m_plan.wait);
        m_socket->SetCongestionControlAlgorithm(Law());
        m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), m_f + 1));
        m_socket->SetIpTos(m_plan.tos);
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Connection::Sent, this));
        m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&Connection::Came, this));
        m_socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Connection::Window, this));
        m_socket->SetConnectCallback(MakeCallback(&Connection::Fill, this),
                                     MakeNullCallback<void, Ptr<Socket>>());
        InetSocketAddress to(m_peer, m_f + 1);
        Mark(to, m_plan.tos, 0);
        m_socket->Connect(to);
    }

    bool Over() const
    {
        return m_over || (m_crowd && m_crowd->m_over);
    }

    // Stops the source: it sends nothing from now on.
    void Stop()
    {
        m_over = true;
        m_source->GetObject<Ipv4>()->SetDown(1);
    }

    // Keeps RESERVE unsent packets in the socket, so that only the window limits the sending.
    void Fill(Ptr<Socket>)
    {
        while (!Over() && m_offered < m_highest + RESERVE)
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
        if (Over() || p->GetSize() == 0)
        {
            return;
        }
        int64_t number = Number(header.GetSequenceNumber(), m_highest);
        Connection& counted = m_crowd ? *m_crowd : *this;
        counted.m_sent++;
        counted.m_again += number < m_highest;
        m_highest = std::max(m_highest, number + 1);
        if (g_rtt && !m_crowd)
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
        if (Over() || !(header.GetFlags() & TcpHeader::ACK) || acked < 1)
        {
            return;
        }
        if (g_rtt && !m_crowd)
        {
            std::fprintf(g_rtt, "r %.17g %d 0 0 0 0 0 0 0 %" PRIi64 " 0\n", Clock(), m_f, acked - 1);
        }
        acked = std::max(m_acked, acked);
        if (m_crowd)
        {
            m_crowd->m_acked += acked - m_acked;
        }
        m_acked = acked;
        if (m_acked == m_plan.packets)
        {
            m_over = true;
            if (!m_crowd)
            {
                std::fprintf(g_result, "done %d %.17g\n", m_f, Clock());
            }
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
    Ptr<Node> m_source, m_sink;
    Connection* m_crowd = nullptr; // of a short flow
    Ipv4Address m_peer;
    Ptr<TcpSocketBase> m_socket, m_listener;
    bool m_over = false;
    int64_t m_offered = 0, m_sent = 0, m_again = 0, m_highest = 0, m_acked = 0; // packets
    double m_window = 0.0;                                                      // bytes
};

} // namespace
