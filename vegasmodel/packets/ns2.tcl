# The network of one scenario in ns-2.  ns2_script.py appends calls of the procedures below; their
# arguments are numbers and words of its own, never a name that a user chose.
#
# Every link has a node at either end of its own.  Routes are set by hand, hop by hop: no
# all-pairs search, and any order of links.  "forward" is from end a to end b.

set tcl_precision 17
set UNLIMITED 1000000000

proc begin {seed} {
    global ns defaultRNG out dropfile
    $defaultRNG seed $seed
    set ns [new Simulator]
    $ns rtproto Manual
    set out [open result.txt w]
    set dropfile [open drops.txt w]
}

proc other {direction} {
    return [expr {$direction eq "forward" ? "reverse" : "forward"}]
}

# --- links ---------------------------------------------------------------------------------

proc link {i bandwidth delay} {
    global ns end
    set end($i,forward) [$ns node]
    set end($i,reverse) [$ns node]
    wire $end($i,forward) $end($i,reverse) $bandwidth $delay
    wire $end($i,reverse) $end($i,forward) $bandwidth $delay
}

# end(i,direction) is the node where that direction enters the link.
proc line {i direction} {
    global ns end
    return [$ns link $end($i,$direction) $end($i,[other $direction])]
}

proc wire {from to bandwidth delay} {
    global ns UNLIMITED
    $ns simplex-link $from $to $bandwidth $delay DropTail
    $ns queue-limit $from $to $UNLIMITED
}

proc limit {i direction packets} {
    [[line $i $direction] queue] set limit_ $packets
}

# Where data packets enter: before the loss model, if there is one; ACKs go past it.
proc data_head {i direction} {
    global entry
    if {[info exists entry($i,$direction)]} { return $entry($i,$direction) }
    return [[line $i $direction] head]
}

# Waiting packets over time, and each dropped packet as a line of its own.
proc watch {i direction} {
    global ns monitor end dropfile
    set monitor($i,$direction) \
        [$ns monitor-queue $end($i,$direction) $end($i,[other $direction]) ""]
    set drops [new Trace/Drop]
    $drops attach $dropfile
    $drops set src_ $i
    $drops set dst_ [expr {$direction eq "forward" ? 0 : 1}]
    set head [[line $i $direction] set drophead_]
    $drops target [$head target]
    $head target $drops
}

# --- flows ---------------------------------------------------------------------------------

# route: {link direction link direction ...} as the data meets them.
proc stations {f route bandwidth delay} {
    global ns source sink end
    set source($f) [$ns node]
    set sink($f) [$ns node]
    set first $end([lindex $route 0],[lindex $route 1])
    set last $end([lindex $route end-1],[other [lindex $route end]])
    foreach {from to} "$source($f) $first $last $sink($f)" {
        wire $from $to $bandwidth $delay
        wire $to $from $bandwidth $delay
    }
    $source($f) add-route [$sink($f) id] [[$ns link $source($f) $first] head]
    $sink($f) add-route [$source($f) id] [[$ns link $sink($f) $last] head]
    $last add-route [$sink($f) id] [[$ns link $last $sink($f)] head]
    $first add-route [$source($f) id] [[$ns link $first $source($f)] head]
    set at $first
    foreach {i direction} $route {
        $at add-route [$sink($f) id] [data_head $i $direction]
        set at $end($i,[other $direction])
    }
    for {set k [llength $route]} {$k > 0} {incr k -2} {
        set i [lindex $route [expr {$k - 2}]]
        set back [other [lindex $route [expr {$k - 1}]]]
        $at add-route [$source($f) id] [[line $i $back] head]
        set at $end($i,[other $back])
    }
}

proc connection {f agent_class sink_class size ack_size window settings} {
    global ns agent receiver source sink
    set agent($f) [new $agent_class]
    set receiver($f) [new $sink_class]
    $agent($f) set fid_ $f
    $agent($f) set packetSize_ $size
    $agent($f) set window_ $window
    $receiver($f) set fid_ $f
    $receiver($f) set packetSize_ $ack_size
    foreach {variable value} $settings { $agent($f) set $variable $value }
    $ns attach-agent $source($f) $agent($f)
    $ns attach-agent $sink($f) $receiver($f)
    $ns connect $agent($f) $receiver($f)
}

# packets < 0: without end.
proc start {f time packets} {
    global ns agent
    if {$packets < 0} {
        $ns at $time "$agent($f) send -1"
    } else {
        $ns at $time "$agent($f) advance $packets"
        $agent($f) proc done {} "finished $f"
    }
}

proc stop {f time} {
    global ns agent
    $ns at $time "$agent($f) advance 0"
}

proc finished {f} {
    global ns out
    puts $out "done $f [$ns now]"
}

# --- what is measured ----------------------------------------------------------------------

# Cumulatively acknowledged packets, retransmissions, packets sent.
proc count {f label} {
    global ns out agent
    set a $agent($f)
    puts $out "flow $f $label [$ns now] [expr {[$a set ack_] + 1}]\
        [$a set nrexmitpack_] [$a set ndatapack_]"
}

# Integral of the waiting packets, packets that came, left and were dropped there.
proc count_link {i direction label} {
    global ns out monitor
    set m $monitor($i,$direction)
    set integral [$m get-pkts-integrator]
    $integral newpoint [$ns now] [$integral set lasty_]
    puts $out "link $i $direction $label [$ns now] [$integral set sum_]\
        [$m set parrivals_] [$m set pdepartures_] [$m set bdepartures_]"
}

proc sample {every flows links} {
    global ns out agent monitor
    set row "sample [$ns now]"
    foreach f $flows { lappend row [$agent($f) set cwnd_] }
    foreach i $links { lappend row [$monitor($i,forward) set pkts_] }
    puts $out $row
    $ns after $every [list sample $every $flows $links]
}

proc finish {} {
    global out dropfile
    puts $out "end"
    close $out
    close $dropfile
    exit 0
}
