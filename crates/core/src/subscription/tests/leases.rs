//! Leases and claims: who says which delivery it speaks of is heard exactly while it holds it.

use super::script::check;
use expect_test::expect;

/// U25, first run: lost is lost. The extension counts from the moment of the call.
#[test]
fn u25_a_lease_that_was_lost_stays_lost() {
    check(
        "shared 5,2000,100,1000,dlq
        join a
        join b room=0
        publish t
        +1500ms
        claim a 0#1 extend=2000
        +1900ms
        why
        join b
        +300ms
        claim a 0#1 extend=2000
        claim a 0#1 nack
        claim a 0#1 ack
        stats
        claim b 0#2 ack
        claim b 0#2 ack
        why",
        expect![[r#"
            join a                 |
            join b room=0          |
            publish t              | a<-0#1
            +1500ms                |
            claim a 0#1 extend=2000 | Extended { for_ms: 2000 }
            +1900ms                |
            why                    | offset 0 is with consumer `1`, not acknowledged; it comes back in 0.1 s
            join b                 |
            +300ms                 | 3.500s:failed:0#1(ack timeout) 3.600s:b<-0#2
            claim a 0#1 extend=2000 | Stale
            claim a 0#1 nack       | Stale
            claim a 0#1 ack        | Stale
            stats                  | backlog=1 in_flight=1 consumers=2 attached=2
            claim b 0#2 ack        | done:0 Taken
            claim b 0#2 ack        | Stale
            why                    | drained: every message is finished
        "#]],
    );
}

/// U25, second run: extensions end at the bound of their sum, and each has its own.
#[test]
fn u25_extensions_are_bounded_one_by_one_and_in_total() {
    check(
        "shared 5,2000,100,1000,dlq lease=5000 total=12000
        join a
        publish t
        +1s
        claim a 0#1 extend=60000
        +4s
        claim a 0#1 extend=60000
        +4s
        claim a 0#1 extend=60000
        +2900ms
        claim a 0#1 extend=60000
        +100ms
        claim a 0#1 extend=60000
        +1s
        claim a 0#2 extend=100
        +100ms",
        expect![[r#"
            join a                 |
            publish t              | a<-0#1
            +1s                    |
            claim a 0#1 extend=60000 | Extended { for_ms: 5000 }
            +4s                    |
            claim a 0#1 extend=60000 | Extended { for_ms: 5000 }
            +4s                    |
            claim a 0#1 extend=60000 | Extended { for_ms: 3000 }
            +2900ms                |
            claim a 0#1 extend=60000 | Extended { for_ms: 100 }
            +100ms                 | 12.000s:failed:0#1(ack timeout)
            claim a 0#1 extend=60000 | Stale
            +1s                    | 12.100s:a<-0#2
            claim a 0#2 extend=100 | Extended { for_ms: 100 }
            +100ms                 | 13.100s:failed:0#2(ack timeout)
        "#]],
    );
}

/// The clock decides when a lease is over, not which event comes first.
#[test]
fn an_extension_that_comes_with_the_timer_is_too_late() {
    check(
        "shared 5,2000,100,1000,dlq
        join a
        publish t
        sleep 2000
        claim a 0#1 extend=5000
        +0s",
        expect![[r#"
            join a                 |
            publish t              | a<-0#1
            sleep 2000             |
            claim a 0#1 extend=5000 | Stale
            +0s                    | 2.000s:failed:0#1(ack timeout)
        "#]],
    );
}

/// An extension of nothing gives the message back, and the delivery does not count; whoever had
/// it then is not heard for the next one, though that has the same number.
#[test]
fn a_release_burns_no_attempt() {
    check(
        "shared 0,2000,100,1000,drop
        join a
        join b
        publish t
        claim a 0#1 extend=0
        claim a 0#1 ack
        claim b 0#1 ack",
        expect![[r#"
            join a                 |
            join b                 |
            publish t              | a<-0#1
            claim a 0#1 extend=0   | b<-0#1 Taken
            claim a 0#1 ack        | Stale
            claim b 0#1 ack        | done:0 Taken
        "#]],
    );
}

/// After a seek the numbers start anew, and the claims of before are void.
#[test]
fn claims_of_before_a_seek_are_void() {
    check(
        "exclusive
        join a
        publish m*2
        claim a 0#1 nack
        seek 0
        claim a 0#1 ack epoch=0
        claim a 1#1 extend=5000 epoch=0
        claim a 1#1 nack epoch=0
        claim a 0#1 ack
        claim a 1#1 ack",
        expect![[r#"
            join a                 |
            publish m*2            | a<-0#1 a<-1#1
            claim a 0#1 nack       | failed:0#1 Taken
            seek 0                 | moved:0 a<-0#1 a<-1#1
            claim a 0#1 ack epoch=0 | Stale
            claim a 1#1 extend=5000 epoch=0 | Stale
            claim a 1#1 nack epoch=0 | Stale
            claim a 0#1 ack        | done:0 Taken
            claim a 1#1 ack        | done:1 Taken
        "#]],
    );
}

/// The client may be faster than the news that the connection took the message.
#[test]
fn a_claim_may_come_before_the_drain() {
    check(
        "shared 5,2000,100,1000,dlq
        join a room=5
        publish m*3
        claim a 0#1 ack
        claim a 1#1 extend=3000
        claim a 2#1 nack
        claim b 1#1 ack
        drain a 3
        stats
        +2900ms
        +100ms",
        expect![[r#"
            join a room=5          |
            publish m*3            | a<-0#1 a<-1#1 a<-2#1
            claim a 0#1 ack        | void:a<-0 done:0 Taken
            claim a 1#1 extend=3000 | Extended { for_ms: 3000 }
            claim a 2#1 nack       | void:a<-2 failed:2#1 Taken
            claim b 1#1 ack        | Stale
            drain a 3              |
            stats                  | backlog=2 in_flight=1 waiting=1 consumers=1 attached=1
            +2900ms                | 0.100s:a<-2#2
            +100ms                 | 3.000s:failed:1#1(ack timeout)
        "#]],
    );
}

/// The compatible wire cannot claim; it may still ask for more time, while the message is out.
#[test]
fn without_a_claim_whatever_is_out_is_extended() {
    check(
        "shared 5,2000,100,1000,dlq
        join a
        publish m
        extend 0 3000
        extend 7 3000
        +3s
        extend 0 3000",
        expect![[r#"
            join a                 |
            publish m              | a<-0#1
            extend 0 3000          | Extended { for_ms: 3000 }
            extend 7 3000          | Stale
            +3s                    | 3.000s:failed:0#1(ack timeout)
            extend 0 3000          | Stale
        "#]],
    );
}
