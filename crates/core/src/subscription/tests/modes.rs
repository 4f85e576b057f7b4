//! Who receives what: one script per rule of a subscription type.

use super::script::check;
use expect_test::expect;

#[test]
fn shared_is_a_strict_round_robin() {
    check(
        "shared
        join a
        join b
        join c
        publish k*12",
        expect![[r#"
            join a                 |
            join b                 |
            join c                 |
            publish k*12           | a<-0#1 b<-1#1 c<-2#1 a<-3#1 b<-4#1 c<-5#1 a<-6#1 b<-7#1 c<-8#1 a<-9#1 b<-10#1 c<-11#1
        "#]],
    );
}

#[test]
fn shared_passes_over_a_consumer_without_room_and_comes_back_to_it() {
    check(
        "shared
        join a room=1
        join b
        publish k*4
        why
        drain a 1
        publish k*2",
        expect![[r#"
            join a room=1          |
            join b                 |
            publish k*4            | a<-0#1 b<-1#1 b<-2#1 b<-3#1
            why                    | offset 0 is queued for consumer `1`, whose connection takes nothing
            drain a 1              |
            publish k*2            | a<-4#1 b<-5#1
        "#]],
    );
}

#[test]
fn the_window_bounds_what_is_out_and_an_ack_lets_the_next_go() {
    check(
        "shared 5,30000,1000,60000,block window=2
        join a
        publish k*4
        why
        ack 1
        window 3
        ack 0 2 3",
        expect![[r#"
            join a                 |
            publish k*4            | a<-0#1 a<-1#1
            why                    | window full: 2 messages are out unacknowledged
            ack 1                  | done:1 a<-2#1
            window 3               | a<-3#1
            ack 0 2 3              | done:0 done:2 done:3
        "#]],
    );
}

#[test]
fn exclusive_delivers_in_order_and_refuses_another_name_while_the_holder_lives() {
    check(
        "exclusive
        admits a
        join a
        admits b
        admits a
        publish k*3
        kill a
        admits b
        join b
        admits a
        ack 0..3",
        expect![[r#"
            admits a               | yes
            join a                 |
            admits b               | no, a holds it
            admits a               | yes
            publish k*3            | a<-0#1 a<-1#1 a<-2#1
            kill a                 | failed:0#1(consumer gone) failed:1#1(consumer gone) failed:2#1(consumer gone)
            admits b               | yes
            join b                 | b<-0#2 b<-1#2 b<-2#2
            admits a               | no, b holds it
            ack 0..3               | done:0 done:1 done:2
        "#]],
    );
}

#[test]
fn a_takeover_by_the_same_name_gets_at_once_what_it_held() {
    check(
        "exclusive
        join a
        publish k*3
        ack 1
        join a
        ack 0 2",
        expect![[r#"
            join a                 |
            publish k*3            | a<-0#1 a<-1#1 a<-2#1
            ack 1                  | done:1
            join a                 | failed:0#1(consumer gone) failed:2#1(consumer gone) a<-0#2 a<-2#2
            ack 0 2                | done:0 done:2
        "#]],
    );
}

#[test]
fn failover_hands_over_to_the_next_attached_and_the_returned_one_queues_behind() {
    check(
        "failover
        attach b
        attach a
        open b
        open a
        publish k*2
        kill b
        join b
        publish k
        kill a
        ack 0..3
        why",
        expect![[r#"
            attach b               |
            attach a               |
            open b                 |
            open a                 |
            publish k*2            | b<-0#1 b<-1#1
            kill b                 | failed:0#1(consumer gone) failed:1#1(consumer gone) a<-0#2 a<-1#2
            join b                 |
            publish k              | a<-2#1
            kill a                 | failed:0#2(consumer gone) failed:1#2(consumer gone) failed:2#1(consumer gone) b<-0#3 b<-1#3 b<-2#2
            ack 0..3               | done:0 done:1 done:2
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn without_consumers_nothing_is_read() {
    check(
        "shared
        publish k*2
        why
        hold
        join a
        why
        answer
        why
        kill a
        why",
        expect![[r#"
            publish k*2            |
            why                    | no consumer has an open stream
            hold                   |
            join a                 |
            why                    | reading the log
            answer                 | a<-0#1 a<-1#1
            why                    | offset 0 is with consumer `1`, not acknowledged; it comes back in 30.0 s
            kill a                 | failed:0#1(consumer gone) failed:1#1(consumer gone)
            why                    | no consumer has an open stream
        "#]],
    );
}

#[test]
fn key_shared_keeps_keys_apart_and_one_message_of_a_key_out() {
    check(
        "keyshared
        join a
        join b
        publish k0 k0 k2 k2 k1
        ack 2
        ack 0
        ack 1 3 4
        why",
        expect![[r#"
            join a                 |
            join b                 |
            publish k0 k0 k2 k2 k1 | b<-0#1 a<-2#1 b<-4#1
            ack 2                  | done:2 a<-3#1
            ack 0                  | done:0 b<-1#1
            ack 1 3 4              | done:1 done:3 done:4
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn key_shared_sends_to_whom_asks_for_the_key_and_skips_what_nobody_wants() {
    check(
        "keyshared
        join a filters=eu-*
        join b filters=us-*,xx
        publish eu-1 us-1 other other xx eu-1
        ack 0
        join c
        publish other eu-2",
        expect![[r#"
            join a filters=eu-*    |
            join b filters=us-*,xx |
            publish eu-1 us-1 other other xx eu-1 | unmatched:2 unmatched:3 a<-0#1 b<-1#1 b<-4#1 done:2..4
            ack 0                  | done:0 a<-5#1
            join c                 |
            publish other eu-2     | c<-6#1 a<-7#1
        "#]],
    );
}

#[test]
fn a_key_waits_for_an_attached_consumer_without_a_stream() {
    check(
        "keyshared
        join a filters=a*
        attach b filters=b*
        publish a1 b1 b2
        ack 0
        why
        open b
        kill b
        detach b
        why",
        expect![[r#"
            join a filters=a*      |
            attach b filters=b*    |
            publish a1 b1 b2       | a<-0#1
            ack 0                  | done:0
            why                    | offset 1 has key `b1`, which only consumers without a stream want
            open b                 | b<-1#1 b<-2#1
            kill b                 | failed:1#1(consumer gone) failed:2#1(consumer gone)
            detach b               | unmatched:1 unmatched:2 done:1..3
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn a_full_owner_holds_its_keys_and_no_others() {
    check(
        "keyshared
        join a room=1 filters=a*
        join b filters=b*
        publish a1 a2 a3 b1 b2
        ack 3 4
        why
        drain a 1
        drain a 1
        ack 0..3",
        expect![[r#"
            join a room=1 filters=a* |
            join b filters=b*      |
            publish a1 a2 a3 b1 b2 | a<-0#1 b<-3#1 b<-4#1
            ack 3 4                | done:3 done:4
            why                    | consumers have no room: they do not read fast enough
            drain a 1              | a<-1#1
            drain a 1              | a<-2#1
            ack 0..3               | done:0 done:1 void:a<-2 done:2
        "#]],
    );
}

#[test]
fn new_filters_move_keys_that_are_not_out() {
    check(
        "keyshared 5,30000,1000,60000,block window=1
        join a filters=x*
        join b filters=y*
        publish x1 x2 y1
        join b filters=x2,y*
        ack 0 1 2",
        expect![[r#"
            join a filters=x*      |
            join b filters=y*      |
            publish x1 x2 y1       | a<-0#1
            join b filters=x2,y*   |
            ack 0 1 2              | done:0 b<-1#1 done:1 b<-2#1 done:2
        "#]],
    );
}

#[test]
fn a_key_stays_with_its_holder_when_a_consumer_joins() {
    check(
        "keyshared
        join a
        publish k0 k0 k2 k2
        join b
        nack 0
        ack 2
        +1s
        ack 0",
        expect![[r#"
            join a                 |
            publish k0 k0 k2 k2    | a<-0#1 a<-2#1
            join b                 |
            nack 0                 | failed:0#1
            ack 2                  | done:2 a<-3#1
            +1s                    | 1.000s:b<-0#2
            ack 0                  | done:0 b<-1#1
        "#]],
    );
}
