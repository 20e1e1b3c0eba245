// The queue of a Rate-Delay router, by figure 2 of the paper by Podlesny and Williamson.  It is the
// transmitter's own queue, so the next packet is chosen at the moment at which the link becomes
// idle.
#pragma once

#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/ppp-header.h"

#include <array>
#include <cmath>
#include <vector>

enum Service
{
    R = 0,
    D = 1
};

const uint8_t D_TOS = 46 << 2; // DSCP 46 marks class D; everything else is class R

// Estimates the number of active flows by a time-stamp vector (Kim and O'Hallaron 2003).  Each flow
// hashes to one of b places, which keeps the time of its last packet.  If z places are out of date,
// about b ln(b/z) flows are active.
class FlowCount
{
  public:
    void See(uint32_t hash, double now)
    {
        m_last[hash % m_last.size()] = now;
    }

    double Active(double now, double expiry) const
    {
        double b = m_last.size();
        double z = 0.0;
        for (double last : m_last)
        {
            z += now - last > expiry;
        }
        return b * std::log(b / std::max(z, 1.0));
    }

  private:
    std::vector<double> m_last = std::vector<double>(8192, -1e9);
};

class RateDelayQueue : public ns3::Queue<ns3::Packet>
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId id = ns3::TypeId("vegasmodel::RateDelayQueue")
                                    .SetParent<ns3::Queue<ns3::Packet>>()
                                    .AddConstructor<RateDelayQueue>();
        return id;
    }

    void Configure(double k, uint32_t limitR, uint32_t limitD)
    {
        m_k = k;
        m_limit = {limitR, limitD};
        SetMaxSize(ns3::QueueSize(ns3::QueueSizeUnit::PACKETS, limitR + limitD));
        m_firstD = GetContainer().end();
        ns3::Simulator::Schedule(PERIOD, &RateDelayQueue::Recalculate, this);
    }

    bool Enqueue(ns3::Ptr<ns3::Packet> p) override
    {
        uint32_t hash;
        Service x = Classify(p, hash);
        m_flows[x].See(hash, ns3::Simulator::Now().GetSeconds());
        if (m_packets[x] >= m_limit[x])
        {
            DropBeforeEnqueue(p);
            return false;
        }
        // Both classes are in one list, class R before class D.
        Iterator place;
        if (!DoEnqueue(x == R ? m_firstD : GetContainer().end(), p, place))
        {
            return false;
        }
        if (x == D && m_packets[D] == 0)
        {
            m_firstD = place;
        }
        m_packets[x]++;
        return true;
    }

    ns3::Ptr<ns3::Packet> Dequeue() override
    {
        if (GetContainer().empty())
        {
            return nullptr;
        }
        Service x = Select();
        ConstIterator first = Head(x);
        Account(x, (*first)->GetSize());
        if (x == D)
        {
            m_firstD = std::next(first);
        }
        m_packets[x]--;
        return DoDequeue(first);
    }

    ns3::Ptr<ns3::Packet> Remove() override
    {
        return Dequeue();
    }

    ns3::Ptr<const ns3::Packet> Peek() const override
    {
        return GetContainer().empty() ? nullptr : DoPeek(Head(Select()));
    }

  private:
    ConstIterator Head(Service x) const
    {
        return x == R ? GetContainer().begin() : m_firstD;
    }

    // Figure 2, first part: the queue from which to transmit.
    Service Select() const
    {
        if (m_packets[R] > 0 && m_packets[D] > 0)
        {
            return m_k * m_n[R] * m_L[D] > m_n[D] * m_L[R] ? R : D;
        }
        return m_packets[R] > 0 ? R : D;
    }

    // Figure 2, second part: updates the volumes served, before a packet of s bytes leaves queue x.
    void Account(Service x, double s)
    {
        if (m_packets[R] > 0 && m_packets[D] > 0)
        {
            m_L[x] += s;
            m_deltaL = std::max(m_L[R] * m_n[D] / (m_k * m_n[R]) - m_L[D], 0.0);
        }
        else if (m_packets[R] > 0) // only the D buffer is empty
        {
            m_L = {0.0, 0.0};
        }
        else // only the R buffer is empty
        {
            if (m_deltaL > 0)
            {
                m_deltaL -= s;
            }
            if (m_deltaL > 0)
            {
                m_L[D] = -m_deltaL;
            }
            else
            {
                m_L = {0.0, 0.0};
            }
        }
    }

    // "The traffic volume served since the start of the most recent recalculation interval."
    void Recalculate()
    {
        double now = ns3::Simulator::Now().GetSeconds();
        for (Service x : {R, D})
        {
            m_n[x] = std::max(std::round(m_flows[x].Active(now, EXPIRY)), 1.0);
        }
        m_L = {0.0, 0.0};
        m_deltaL = 0.0;
        ns3::Simulator::Schedule(PERIOD, &RateDelayQueue::Recalculate, this);
    }

    static Service Classify(ns3::Ptr<const ns3::Packet> p, uint32_t& hash)
    {
        ns3::Ptr<ns3::Packet> q = p->Copy();
        ns3::PppHeader ppp;
        ns3::Ipv4Header ip;
        q->RemoveHeader(ppp);
        q->RemoveHeader(ip);
        uint32_t key[3] = {ip.GetSource().Get(), ip.GetDestination().Get(), 0};
        q->CopyData(reinterpret_cast<uint8_t*>(key + 2), 4); // the two ports
        hash = ns3::Hash32(reinterpret_cast<const char*>(key), sizeof key);
        return (ip.GetTos() & 0xfc) == D_TOS ? D : R;
    }

    // The paper does not give these two values (docs/ns3.md).
    inline static const ns3::Time PERIOD = ns3::Seconds(0.4);
    static constexpr double EXPIRY = 1.0;

    double m_k = 1.0;
    std::array<uint32_t, 2> m_limit{};
    std::array<uint32_t, 2> m_packets{}; // q_R, q_D are 0 where these are
    std::array<double, 2> m_L{};         // bytes served
    std::array<double, 2> m_n{1.0, 1.0}; // active flows; 1 before the first count
    double m_deltaL = 0.0;
    std::array<FlowCount, 2> m_flows;
    ConstIterator m_firstD;
};
