//! What survives the death of the broker: attempts, waits, blocks. And what does not have to.

use super::script::check;
use expect_test::expect;

/// U03 b with the broker dying too: each delivery counts, but for the very first, which nobody
/// lived to tell of.
#[test]
fn u03_a_message_that_kills_consumer_and_broker_together_wears_out() {
    check(
        "shared 2,30000,100,1000,dlq all
        join a
        publish p q
        ack 1
        restart
        join a
        restart
        join a
        restart
        join a
        restart
        join a
        dead ok 0
        why",
        expect![[r#"
            join a                 |
            publish p q            | a<-0#1 a<-1#1
            ack 1                  | done:1
            restart                |
            join a                 | a<-0#1 sent:0#1
            restart                |
            join a                 | a<-0#2 sent:0#2
            restart                |
            join a                 | a<-0#3 sent:0#3
            restart                |
            join a                 | DLQ:0#3
            dead ok 0              | done:0
            why                    | drained: every message is finished
        "#]],
    );
}

/// What may have been out is recorded when it goes out again; what is new is not.
#[test]
fn only_what_may_have_been_out_is_recorded_at_its_first_delivery() {
    check(
        "shared 5,30000,1000,60000,block window=2 lookahead=3 all
        join a
        publish m*6
        ack 1
        restart
        join a
        ack 0 2 3 4 5",
        expect![[r#"
            join a                 |
            publish m*6            | a<-0#1 a<-1#1
            ack 1                  | done:1 a<-2#1
            restart                |
            join a                 | a<-0#1 a<-2#1 sent:0#1 sent:2#1
            ack 0 2 3 4 5          | done:0 a<-3#1 sent:3#1 done:2 a<-4#1 done:3 a<-5#1 done:4 done:5
        "#]],
    );
}

/// A wait goes on after a restart, as long as it was, from then on; a delivery ends it.
#[test]
fn waits_go_on_after_a_restart() {
    check(
        "shared 5,30000,1000,60000,block all
        join a
        publish m*2
        nack 0 delay=8000; nack 1 delay=2000
        +3s
        restart
        +5s
        join a
        +3s
        restart
        join a
        +8s",
        expect![[r#"
            join a                 |
            publish m*2            | a<-0#1 a<-1#1
            nack 0 delay=8000      | failed:0#1 delay:0=8000ms
            nack 1 delay=2000      | failed:1#1 delay:1=2000ms
            +3s                    | 2.000s:a<-1#2 2.000s:sent:1#2
            restart                |
            +5s                    |
            join a                 | a<-1#3 sent:1#3
            +3s                    |
            restart                |
            join a                 | a<-1#4 sent:1#4
            +8s                    | 19.000s:a<-0#2 19.000s:sent:0#2
        "#]],
    );
}

/// What is given back uncounted is not counted by a restart either.
#[test]
fn a_clean_close_is_not_counted_after_a_restart() {
    check(
        "shared 5,30000,0,0,block all
        join a
        publish m
        nack 0
        close a
        restart
        join a
        close a
        restart
        join a",
        expect![[r#"
            join a                 |
            publish m              | a<-0#1
            nack 0                 | failed:0#1 a<-0#2 sent:0#2
            close a                | sent:0#1
            restart                |
            join a                 | a<-0#2 sent:0#2
            close a                | sent:0#1
            restart                |
            join a                 | a<-0#2 sent:0#2
        "#]],
    );
}

/// A client that has a message when the broker dies may finish it before it is delivered again.
#[test]
fn an_ack_counts_after_a_restart_before_the_message_is_read_again() {
    check(
        "shared 5,30000,1000,60000,block window=2
        join a
        publish m*8
        restart
        ack 1
        restart
        ack 3
        ack 1
        join b
        ack 0
        seek 0
        restart
        seek 0
        ack 0
        ack 7
        why",
        expect![[r#"
            join a                 |
            publish m*8            | a<-0#1 a<-1#1
            restart                |
            ack 1                  | done:1
            restart                |
            ack 3                  | done:3
            ack 1                  |
            join b                 | b<-0#1 b<-2#1
            ack 0                  | done:0 b<-4#1
            seek 0                 | moved:0 b<-0#1 b<-1#1
            restart                |
            seek 0                 | moved:0
            ack 0                  |
            ack 7                  |
            why                    | no consumer has an open stream
        "#]],
    );
}
