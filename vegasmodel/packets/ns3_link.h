// One direction of a link: its queue, losses and counters.  The formats are those of ns2.tcl.
#pragma once

#include "ns3_rate_delay.h"

#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cinttypes>
#include <cstdio>

namespace
{

using namespace ns3;

FILE* g_result;
FILE* g_drops;
FILE* g_rtt; // null: not recorded
std::vector<int> g_flows; // the flow or crowd behind each port, from port 1 on

double
Clock()
{
    return Simulator::Now().GetSeconds();
}

// A packet of a link without its link and network headers.
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
        int flow = g_flows.at(tcp.GetDestinationPort() - 1);
        std::fprintf(g_drops, "d %.17g %d %d tcp 0 - %d 0 0 %u 0\n", Clock(), link, reverse, flow, number);
    }
}

// Counts the packets that wait at one direction of a link, and those that leave it.
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

// Drops data packets at random.
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

// Gives a device its queue.  A queue disc would pass the next packet to the device before the link
// is idle.  So drop-tail and Rate-Delay services are queues of the device itself.  RED is a queue
// disc of ns-3, before a device that holds one packet.
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

} // namespace
