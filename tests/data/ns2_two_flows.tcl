set ns [new Simulator]
set f [open out.tr w]
$ns trace-all $f
foreach n {s0 s1 a b d0 d1} {set $n [$ns node]}
$ns duplex-link $s0 $a 10Mb 1ms DropTail
$ns duplex-link $s1 $a 10Mb 1ms DropTail
$ns duplex-link $a $b 1.5Mb 10ms DropTail
$ns duplex-link $b $d0 10Mb 1ms DropTail
$ns duplex-link $b $d1 10Mb 1ms DropTail
$ns queue-limit $a $b 10
set t0 [new Agent/TCP/Vegas]; set k0 [new Agent/TCPSink]
set t1 [new Agent/TCP/Reno]; set k1 [new Agent/TCPSink]
$t0 set fid_ 1; $t1 set fid_ 2
$ns attach-agent $s0 $t0; $ns attach-agent $d0 $k0; $ns connect $t0 $k0
$ns attach-agent $s1 $t1; $ns attach-agent $d1 $k1; $ns connect $t1 $k1
set a0 [new Application/FTP]; $a0 attach-agent $t0
set a1 [new Application/FTP]; $a1 attach-agent $t1
$ns at 0.0 "$a0 start"; $ns at 0.0 "$a1 start"
set v [open var.tr w]
foreach t "$t0 $t1" { $t attach $v; $t trace cwnd_; $t trace rtt_; $t trace ack_; $t trace nrexmitpack_ ; $t trace srtt_; $t trace ssthresh_; $t trace maxseq_; $t trace t_seqno_}
$ns at [lindex $argv 0] "fin"
proc fin {} {global ns f v t0 t1 k0 k1; $ns flush-trace; close $f; close $v
 foreach t "$t0 $t1" {puts "[$t set ndatapack_] [$t set nrexmitpack_] [$t set ack_] [$t set nackpack_] [$t set maxseq_]"}
 exit 0}
$ns run
