// A source that waits before it uses a window that has opened, as ns-2's overhead_ makes its own.
#pragma once

#include "ns3/core-module.h"
#include "ns3/internet-module.h"

namespace
{

using namespace ns3;

// A timer begins where the window lets a packet go and none runs yet; while it runs the window is
// shut.  Then all that the window lets out by then goes together, in order.  What is sent again
// upon a third duplicate does not ask for the window, so it does not wait.
class WaitingSocket : public TcpSocketBase
{
  public:
    // A source on node that waits for a uniform draw of at most this many seconds; 0: never.
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
