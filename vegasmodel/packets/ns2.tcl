# Builds the network of one scenario in ns-2.  ns2_script.py appends calls of the procedures below.
# Their arguments are numbers and fixed words, never a name that a user chose.
#
# Every link has two nodes of its own, one at each end.  Routes are set explicitly, hop by hop.
# This avoids a search over all pairs of nodes, and flows can cross links in any order.  A link
# has two directions, "forward" and "reverse", like the flows of a scenario.

set tcl_precision 17  ;# digits, so that a number read from its text is the same number
set UNLIMITED 1000000000  ;# packets of a queue

# Makes the simulator and the files to which it writes.
proc begin {seed} {
    global ns defaultRNG out dropfile rttfile
    $defaultRNG seed $seed
    set ns [new Simulator]
    $ns rtproto Manual
    set out [open result.txt w]
    set dropfile [open drops.txt w]
    set rttfile [open rtt.txt w]
}

# The opposite direction.
proc other {direction} {
    return [expr {$direction eq "forward" ? "reverse" : "forward"}]
}

# --- links ---------------------------------------------------------------------------------

# Makes link i: bandwidth in bit/s, one-way delay in s, ns-2's class of the queue in each direction.
proc link {i bandwidth delay forward_queue reverse_queue} {
    global ns end
    set end($i,forward) [$ns node]
    set end($i,reverse) [$ns node]
    wire $end($i,forward) $end($i,reverse) $bandwidth $delay $forward_queue
    wire $end($i,reverse) $end($i,forward) $bandwidth $delay $reverse_queue
}

# ns-2's object for one direction of link i.  end(i,direction) is the node where that direction
# enters the link.
proc line {i direction} {
    global ns end
    return [$ns link $end($i,$direction) $end($i,[other $direction])]
}

# Makes one direction of a link between two nodes, at first with an unlimited queue.
proc wire {from to bandwidth delay {queue DropTail}} {
    global ns UNLIMITED
    $ns simplex-link $from $to $bandwidth $delay $queue
    $ns queue-limit $from $to $UNLIMITED
}

# Sets up the queue of a link.  settings: variables of the queue and their values.
proc shape {i direction settings} {
    set queue [[line $i $direction] queue]
    foreach {variable value} $settings { $queue set $variable $value }
}

# Makes Rate-Delay services by class-based queueing: weighted round robin over two DropTail queues.
# Each queue gets its share of the link, and what the other does not use.  round: bytes per round.
proc classes {i direction round rate_limit delay_limit} {
    global class
    set link [line $i $direction]
    [$link queue] set maxpkt_ $round
    [$link queue] algorithm formal
    set all [new CBQClass]
    $all setparams none 0 1.0 auto 3 2 0
    $link insert $all
    foreach service {rate delay} limit "$rate_limit $delay_limit" {
        set class($i,$direction,$service) [new CBQClass]
        set queue [new Queue/DropTail]
        $queue set limit_ $limit
        $class($i,$direction,$service) install-queue $queue
        $class($i,$direction,$service) setparams $all true 0.5 auto 1 1 0
        $link insert $class($i,$direction,$service)
    }
}

# Assigns flows and their ACKs to a class.
proc belong {i direction service flows} {
    global class
    foreach f $flows { [line $i $direction] bind $class($i,$direction,$service) $f }
}

# Gives the class rate this part of the link, and the class delay the rest.
proc share {i direction rate} {
    global class
    $class($i,$direction,rate) newallot $rate
    $class($i,$direction,delay) newallot [expr {1.0 - $rate}]
}

# Makes an object that drops each packet that it gets and writes a line about it to drops.txt.
proc grave {i direction} {
    global ns dropfile
    set drops [new Trace/Drop]
    $drops attach $dropfile
    $drops set src_ $i
    $drops set dst_ [expr {$direction eq "forward" ? 0 : 1}]
    $drops target [$ns set nullAgent_]
    return $drops
}

# Records the waiting packets of a link over time, the bytes that left it, and each dropped packet.
proc watch {i direction} {
    global ns monitor bytes end
    set monitor($i,$direction) \
        [$ns monitor-queue $end($i,$direction) $end($i,[other $direction]) ""]
    set bytes($i,$direction) 0
    # at full rate, 2^30 bytes leave between two sums
    set every [expr {8.0 * 0x40000000 / [[[line $i $direction] link] set bandwidth_]}]
    $ns after $every "sum_often $i $direction $every"
    [[line $i $direction] set snoopDrop_] target [grave $i $direction]
}

# Adds the monitor's count of bytes to a sum of our own, and begins the count anew.  The count has
# 32 bits, so it would overflow; the sum cannot.
proc sum_bytes {i direction} {
    global monitor bytes
    incr bytes($i,$direction) [$monitor($i,$direction) set bdepartures_]
    $monitor($i,$direction) set bdepartures_ 0
    return $bytes($i,$direction)
}

# Sums the bytes now, and again after each time of this length, s.
proc sum_often {i direction every} {
    global ns
    sum_bytes $i $direction
    $ns after $every "sum_often $i $direction $every"
}

# Drops data packets at random, before the queue.
proc lossy {i direction probability} {
    global loss
    set loss($i,$direction) [new ErrorModel]
    $loss($i,$direction) unit pkt
    $loss($i,$direction) set rate_ $probability
    $loss($i,$direction) target [[line $i $direction] head]
    $loss($i,$direction) drop-target [grave $i $direction]
}

# Drops the first transmission of some packets of flow f.  A classifier selects them by their
# sequence number, which comes after two doubles in TCP's header.
proc force {f i direction packets} {
    global forced
    set onward [data_head - $i $direction]
    set sorter [new Classifier]
    $sorter set offset_ [expr {[PktHdr_offset PacketHeader/TCP] + 16}]
    $sorter set mask_ 0x7fffffff
    $sorter set shift_ 0
    $sorter defaulttarget $onward
    foreach number $packets {
        set once [new ErrorModel/List]
        $once droplist 0
        $once target $onward
        $once drop-target [grave $i $direction]
        $sorter install $number $once
    }
    set forced($f,$i) $sorter
}

# The first object of link i that data packets of flow f meet; ACKs go directly to the link's head.
proc data_head {f i direction} {
    global forced loss
    if {[info exists forced($f,$i)]} { return $forced($f,$i) }
    if {[info exists loss($i,$direction)]} { return $loss($i,$direction) }
    return [[line $i $direction] head]
}

# --- flows ---------------------------------------------------------------------------------

# Makes the nodes of a flow.  route: {link direction link direction ...} in the order of the data.
proc stations {f route bandwidth delay} {
    global ns source sink end access
    set source($f) [$ns node]
    set sink($f) [$ns node]
    set first $end([lindex $route 0],[lindex $route 1])
    set last $end([lindex $route end-1],[other [lindex $route end]])
    foreach {from to} "$source($f) $first $last $sink($f)" {
        wire $from $to $bandwidth $delay
        wire $to $from $bandwidth $delay
    }
    set access($f) $first
    gate $f [[$ns link $source($f) $first] head]
    $sink($f) add-route [$source($f) id] [[$ns link $sink($f) $last] head]
    $last add-route [$sink($f) id] [[$ns link $last $sink($f)] head]
    $first add-route [$source($f) id] [[$ns link $first $source($f)] head]
    set at $first
    foreach {i direction} $route {
        $at add-route [$sink($f) id] [data_head $f $i $direction]
        set at $end($i,[other $direction])
    }
    for {set k [llength $route]} {$k > 0} {incr k -2} {
        set i [lindex $route [expr {$k - 2}]]
        set back [other [lindex $route [expr {$k - 1}]]]
        $at add-route [$source($f) id] [[line $i $back] head]
        set at $end($i,[other $back])
    }
}

# Selects the congestion control of Linux 2.6 that the entry module of settings names, and sets its
# parameters, such as cubic_beta.  (CUBIC multiplies the window by cubic_beta/1024 after a loss; it
# has no HyStart.)  ns-2 accepts the choice only when the simulation runs.
proc choose_law {agent settings} {
    global ns
    set module [dict get $settings module]
    $ns at [$ns now] "$agent select_ca $module"
    foreach {variable value} $settings {
        if {[regexp "^${module}_(.*)$" $variable all name]} {
            $ns at [$ns now] "$agent set_ca_param $module $name $value"
        }
    }
}

# Makes a sender and a sink for flow f.  settings: variables of the sender and their values.
proc pair {f agent_class sink_class size ack_size settings} {
    global ns source sink
    set a [new $agent_class]
    set k [new $sink_class]
    $a set fid_ $f
    $a set packetSize_ $size
    $k set fid_ $f
    $k set packetSize_ $ack_size
    foreach {variable value} $settings { $a set $variable $value }
    # a new agent has the initial window of its class; reset gives it its own
    if {[string match *windowInit_* $settings]} { $a reset }
    $ns attach-agent $source($f) $a
    $ns attach-agent $sink($f) $k
    $ns connect $a $k
    if {[dict exists $settings module]} { choose_law $a $settings }
    return "$a $k"
}

# Makes the only connection of flow f.  args: those of pair, without f.
proc connection {f args} {
    global agent
    set agent($f) [lindex [eval pair $f $args] 0]
}

# Makes object the first one that packets of the source meet.
proc gate {f object} {
    global source sink gate
    set gate($f) $object
    $source($f) add-route [$sink($f) id] $object
}

# Writes a line to rtt.txt for each data packet that leaves the source and each ACK that reaches it.
proc tap {f} {
    global ns source access gate rttfile
    set sent [new Trace/Enque]
    $sent target $gate($f)
    gate $f $sent
    set ttl [[$ns link $access($f) $source($f)] set ttl_]
    set came [new Trace/Recv]
    $came target [$ttl target]
    $ttl target $came
    foreach trace "$sent $came" {
        $trace attach $rttfile
        $trace set src_ $f
        $trace set dst_ 0
    }
}

# Draws a new propagation delay for each packet that leaves the source: normally distributed about
# mean, and at least 0.  No packet overtakes an earlier one.
proc noisy {f mean deviation} {
    global ns source access gate
    set delay [[$ns link $source($f) $access($f)] link]
    $delay set avoidReordering_ true
    set draw [new RandomVariable/Normal]
    $draw set avg_ $mean
    $draw set std_ $deviation
    set each [new Trace/Enque]
    $each set callback_ 1
    $each proc handle {line} [subst -nocommands {
        set x [$draw value]
        $delay set delay_ [expr {\$x > 0 ? \$x : 0}]
    }]
    $each target $gate($f)
    gate $f $each
}

# Sends a few packets through the empty network, so that Vegas measures its baseRTT.  The flow's
# timer expires in the pause before its start, so it starts with a window of 2, without slow start.
proc probe {f time packets} {
    global ns agent
    $ns at $time "$agent($f) advance $packets"
}

# Starts flow f at a time.  packets < 0: the flow never ends.
proc start {f time packets} {
    global ns
    $ns at $time "launch $f $packets"
}

# Starts flow f now; of a flow that ends, the end is written down.
proc launch {f packets} {
    global agent
    if {$packets < 0} {
        $agent($f) send -1
    } else {
        $agent($f) proc done {} "finished $f"
        $agent($f) advanceby $packets
    }
}

# Lets flow f send no new packets from a time on.
proc stop {f time} {
    global ns agent
    $ns at $time "$agent($f) advance 0"
}

# Writes down the time at which flow f has delivered all its packets.
proc finished {f} {
    global ns out
    puts $out "done $f [$ns now]"
}

# Many short connections between the same two nodes.  An agent that has finished is used again, but
# only after REST seconds, when no late packet of its last connection can arrive.
set REST 5.0

# Prepares the short flows of table f.  args: those of pair, without f.  idle, busy: the agents that
# wait for a flow, and those that have one.  gone: the counters of all flows that have ended.
proc crowd {f args} {
    global maker idle busy gone
    set maker($f) $args
    set idle($f) {}
    set busy($f) {}
    set gone($f) {0 0 0}
}

# Starts a short flow of this many packets.  before: the counters of its agent at this time, as the
# agent goes on counting; only acknowledged packets begin at 0, because the agent was reset.
proc arrive {f packets} {
    global maker idle busy before
    if {[llength $idle($f)]} {
        set both [lindex $idle($f) 0]
        set idle($f) [lrange $idle($f) 1 end]
    } else {
        set both [eval pair $f $maker($f)]
    }
    set a [lindex $both 0]
    set before($a) "0 [$a set nrexmitpack_] [$a set ndatapack_]"
    lappend busy($f) $a
    $a proc done {} "depart $f {$both}"
    $a advance $packets
}

# Ends a short flow: adds its counters to those of all that have ended.  both: its agent and sink.
proc depart {f both} {
    global ns busy gone REST
    set a [lindex $both 0]
    set gone($f) [plus $gone($f) [since $a]]
    set place [lsearch -exact $busy($f) $a]
    set busy($f) [lreplace $busy($f) $place $place]
    $a proc done {} {}
    $ns after $REST "rest $f {$both}"
}

# Resets an agent and its sink, so that a later flow can use them.
proc rest {f both} {
    global idle
    foreach one $both { $one reset }
    lappend idle($f) $both
}

# The sums of two lists, number by number.
proc plus {one two} {
    foreach x $one y $two { lappend sum [expr {$x + $y}] }
    return $sum
}

# Three counters: data packets acknowledged cumulatively (without the SYN), retransmitted, sent.
# Vegas sends no SYN (tcp-vegas.cc has an output() of its own), so its packet 0 carries data.
proc counters {a} {
    set syn [expr {[$a info class] eq "Agent/TCP/Vegas" ? 0 : [$a set syn_]}]
    set acked [expr {[$a set ack_] + 1 - $syn}]
    return "[expr {$acked > 0 ? $acked : 0}] [$a set nrexmitpack_] [$a set ndatapack_]"
}

# By how much the counters of an agent have grown since its flow began.
proc since {a} {
    global before
    foreach x [counters $a] y $before($a) { lappend difference [expr {$x - $y}] }
    return $difference
}

# --- what is measured ----------------------------------------------------------------------

# The three counters of flow f, or of all short flows of table f together.
proc figures {f} {
    global agent busy gone
    if {[info exists agent($f)]} { return [counters $agent($f)] }
    set sum $gone($f)
    foreach a $busy($f) { set sum [plus $sum [since $a]] }
    return $sum
}

# Writes the counters of flow f now.  label: first or last, at the begin or end of the measurement.
proc count {f label} {
    global ns out
    puts $out "flow $f $label [$ns now] [figures $f]"
}

# Three counters of a link: integral of the waiting packets over time, packets and bytes that left.
proc departures {i direction} {
    global ns monitor
    set m $monitor($i,$direction)
    set integral [$m get-pkts-integrator]
    $integral newpoint [$ns now] [$integral set lasty_]
    return "[$integral set sum_] [$m set pdepartures_] [sum_bytes $i $direction]"
}

# The same for a link.
proc count_link {i direction label} {
    global ns out
    puts $out "link $i $direction $label [$ns now] [departures $i $direction]"
}

# Writes a row of numbers: the time; for each flow its window and counters; for each link the
# waiting packets, their integral over time, and the packets and bytes that left.
proc sample {flows links} {
    global ns out agent monitor
    set row "sample [$ns now]"
    foreach f $flows {
        if {[info exists agent($f)]} {
            append row " [$agent($f) set cwnd_] [figures $f]"
        } else {
            append row " nan [figures $f]"
        }
    }
    foreach i $links {
        append row " [$monitor($i,forward) set pkts_] [departures $i forward]"
    }
    puts $out $row
}

proc samples {begin every number flows links} {
    global ns
    for {set k 0} {$k < $number} {incr k} {
        $ns at [expr {$begin + $k * $every}] [list sample $flows $links]
    }
}

proc finish {} {
    global out dropfile rttfile
    puts $out "end"
    close $out
    close $dropfile
    close $rttfile
    exit 0
}
