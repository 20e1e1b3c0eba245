// The two kinds of random waits of a source: above TCP as in ns-2, and below TCP as in Linux.
#pragma once

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>

namespace
{

using namespace ns3;

// A source that waits before it uses an open window, as ns-2's sources do with overhead_.
// When the window allows a packet and no timer runs, a timer starts.  While it runs, the window
// counts as closed.  When it ends, all packets that the window allows are sent together, in order.
// A fast retransmission (third duplicate ACK) does not depend on the window, so it does not wait.
class WaitingSocket : public TcpSocketBase
{
  public:
    // Makes a source on node whose waits are uniform draws up to `longest` seconds; 0: no wait.
    static Ptr<WaitingSocket> On(Ptr<Node> node, double longest)
    {
        auto socket = CreateObject<WaitingSocket>();
        auto tcp = node->GetObject<TcpL4Protocol>();
        if (longest > 0)
        {
            socket->m_draw = CreateObject<UniformRandomVariable>();
            socket->m_draw->SetAttribute("Max", DoubleValue(longest));
        }
        socket->SetNode(node);
        socket->SetTcp(tcp);
        socket->SetRtt(CreateObject<RttMeanDeviation>());
        tcp->AddSocket(socket);
        return socket;
    }

  protected:
    uint32_t AvailableWindow() const override
    {
        uint32_t room = TcpSocketBase::AvailableWindow();
        if (!m_draw || m_over || room < m_tcb->m_segmentSize)
        {
            return room;
        }
        if (!m_timer.IsRunning())
        {
            Ptr<WaitingSocket> self(const_cast<WaitingSocket*>(this));
            m_timer = Simulator::Schedule(Seconds(m_draw->GetValue()), &WaitingSocket::Use, self);
        }
        return 0;
    }

  private:
    void Use()
    {
        m_over = true;
        SendPendingData(m_connected);
        m_over = false;
    }

    Ptr<UniformRandomVariable> m_draw; // seconds; null: it never waits
    mutable EventId m_timer;
    bool m_over = false; // the wait is over just now
};

// A link between a source and its router, on which each packet of the source waits at random, as in
// Linux's netem: it arrives at the end of its wait, but not before the packet sent before it.
class WaitingChannel : public PointToPointChannel
{
  public:
    // The channel takes the place of the one between the two devices.
    static void Between(Ptr<PointToPointNetDevice> source, Ptr<PointToPointNetDevice> router,
                        double delay, double longest)
    {
        auto channel = CreateObject<WaitingChannel>();
        channel->SetAttribute("Delay", TimeValue(Seconds(delay)));
        channel->m_source = source;
        channel->m_draw->SetAttribute("Max", DoubleValue(longest));
        source->Attach(channel);
        router->Attach(channel);
    }

    bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> from, Time takes) override
    {
        if (from == m_source)
        {
            Time now = Simulator::Now();
            m_arrival = std::max(m_arrival, now + takes + Seconds(m_draw->GetValue()));
            takes = m_arrival - now;
        }
        return PointToPointChannel::TransmitStart(packet, from, takes);
    }

  private:
    Ptr<UniformRandomVariable> m_draw = CreateObject<UniformRandomVariable>(); // seconds
    Ptr<PointToPointNetDevice> m_source;
    Time m_arrival; // of the last packet, without the channel's delay
};

} // namespace
