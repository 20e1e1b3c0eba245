// A source that waits before it uses an open window, as ns-2's sources do with overhead_.
#pragma once

#include "ns3/core-module.h"
#include "ns3/internet-module.h"

namespace
{

using namespace ns3;

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

} // namespace
