//! Failures: nack, timeout, loss of a consumer, poison, dead letters.

use super::script::check;
use expect_test::expect;

#[test]
fn a_nack_delay_is_a_floor_capped_by_the_policy() {
    check(
        "exclusive 9,30000,1000,60000,block
        join a
        publish k
        nack 0 delay=5 bad json
        +1s
        nack 0 delay=7000
        +7s
        nack 0 delay=999999999
        +60s
        stats",
        expect![[r#"
            join a                 |
            publish k              | a<-0#1
            nack 0 delay=5 bad json | failed:0#1(bad json)
            +1s                    | 1.000s:a<-0#2
            nack 0 delay=7000      | failed:0#2
            +7s                    | 8.000s:a<-0#3
            nack 0 delay=999999999 | failed:0#3
            +60s                   | 68.000s:a<-0#4
            stats                  | backlog=1 in_flight=1 consumers=1 attached=1
        "#]],
    );
}

#[test]
fn a_nack_counts_once_and_only_in_flight() {
    check(
        "shared 5,30000,1000,60000,block
        join a room=5
        nack 0
        publish k
        nack 0
        nack 0
        why
        drain a 1
        +1s
        drain a 1
        ack 0
        nack 0",
        expect![[r#"
            join a room=5          |
            nack 0                 |
            publish k              | a<-0#1
            nack 0                 | void:a<-0 failed:0#1
            nack 0                 |
            why                    | offset 0 waits for its re-delivery in 1.0 s
            drain a 1              |
            +1s                    | 1.000s:a<-0#2
            drain a 1              |
            ack 0                  | done:0
            nack 0                 |
        "#]],
    );
}

#[test]
fn others_of_the_window_go_on_while_one_waits() {
    check(
        "exclusive 5,30000,1000,60000,block window=3
        join a
        publish k*5
        nack 0
        ack 1 2
        +1s",
        expect![[r#"
            join a                 |
            publish k*5            | a<-0#1 a<-1#1 a<-2#1
            nack 0                 | failed:0#1
            ack 1 2                | done:1 a<-3#1 done:2 a<-4#1
            +1s                    | 1.000s:a<-0#2
        "#]],
    );
}

#[test]
fn a_clean_close_burns_no_attempt_and_a_loss_does() {
    check(
        "shared 1,30000,1000,60000,block
        join a
        join b room=5
        publish k*4
        close a
        kill b
        join c
        kill c
        join c",
        expect![[r#"
            join a                 |
            join b room=5          |
            publish k*4            | a<-0#1 b<-1#1 a<-2#1 b<-3#1
            close a                | b<-0#1 b<-2#1
            kill b                 |
            join c                 | c<-0#1 c<-1#1 c<-2#1 c<-3#1
            kill c                 | failed:0#1(consumer gone) failed:1#1(consumer gone) failed:2#1(consumer gone) failed:3#1(consumer gone)
            join c                 | c<-0#2 c<-1#2 c<-2#2 c<-3#2
        "#]],
    );
}

#[test]
fn poison_blocks_what_is_behind_it_until_it_is_acked() {
    check(
        "shared 0,30000,1000,60000,block window=3
        join a
        publish k*6
        nack 1 no such customer
        ack 0 2
        why
        stats
        +3600s
        ack 1
        ack 3..6
        why",
        expect![[r#"
            join a                 |
            publish k*6            | a<-0#1 a<-1#1 a<-2#1
            nack 1 no such customer | blocked:1#1(no such customer)
            ack 0 2                | done:0 done:2
            why                    | blocked by offset 1 for 0.0 s at attempt 1: no such customer
            stats                  | backlog=4 ready=3 blocked=1 consumers=1 attached=1
            +3600s                 |
            ack 1                  | done:1 a<-3#1 a<-4#1 a<-5#1
            ack 3..6               | done:3 done:4 done:5
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn a_policy_change_releases_what_blocks() {
    check(
        "exclusive 0,30000,1000,60000,block window=1
        join a
        publish k*3
        nack 0 x
        policy 1,30000,1000,60000,block
        nack 0 y
        policy 1,30000,1000,60000,dlq
        dead ok 0
        nack 1
        +1s
        nack 1
        policy 1,30000,1000,60000,drop
        dead fail 1 too late
        ack 2
        why",
        expect![[r#"
            join a                 |
            publish k*3            | a<-0#1
            nack 0 x               | blocked:0#1(x)
            policy 1,30000,1000,60000,block | failed:0#1(x) a<-0#2
            nack 0 y               | blocked:0#2(y)
            policy 1,30000,1000,60000,dlq | failed:0#2(y) DLQ:0#2(y)
            dead ok 0              | done:0 a<-1#1
            nack 1                 | failed:1#1
            +1s                    | 1.000s:a<-1#2
            nack 1                 | failed:1#2 DLQ:1#2
            policy 1,30000,1000,60000,drop |
            dead fail 1 too late   | dropped:1 done:1 a<-2#1
            ack 2                  | done:2
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn a_seek_releases_what_blocks() {
    check(
        "exclusive 0,30000,1000,60000,block window=1
        join a
        publish k*3
        nack 0 x
        seek 1
        ack 0
        ack 1
        seek 0",
        expect![[r#"
            join a                 |
            publish k*3            | a<-0#1
            nack 0 x               | blocked:0#1(x)
            seek 1                 | moved:1 a<-1#1
            ack 0                  |
            ack 1                  | done:1 a<-2#1
            seek 0                 | moved:0 a<-0#1
        "#]],
    );
}

#[test]
fn drop_finishes_poison() {
    check(
        "exclusive 1,30000,1000,60000,drop window=1
        join a
        publish k*2
        nack 0
        +1s
        nack 0",
        expect![[r#"
            join a                 |
            publish k*2            | a<-0#1
            nack 0                 | failed:0#1
            +1s                    | 1.000s:a<-0#2
            nack 0                 | failed:0#2 dropped:0 done:0 a<-1#1
        "#]],
    );
}

#[test]
fn a_dead_letter_moves_the_cursor_only_once_its_copy_is_durable() {
    check(
        "exclusive 1,30000,1000,60000,dlq window=1
        join a
        publish k*2
        nack 0 first
        +1s
        nack 0 second
        progress
        why
        dead ok 0
        progress",
        expect![[r#"
            join a                 |
            publish k*2            | a<-0#1
            nack 0 first           | failed:0#1(first)
            +1s                    | 1.000s:a<-0#2
            nack 0 second          | failed:0#2(second) DLQ:0#2(second)
            progress               | Progress { cursor: Offset(0), finished: {}, finished_len: 0, attempts: {Offset(0): Attempts { count: 2, blocked: false, reason: "second", delay_ms: 0 }} }
            why                    | dead-letter copy of offset 0 is being written
            dead ok 0              | done:0 a<-1#1
            progress               | Progress { cursor: Offset(1), finished: {}, finished_len: 0, attempts: {} }
        "#]],
    );
}

#[test]
fn a_failing_dead_letter_is_tried_ever_more_slowly() {
    check(
        "exclusive 0,30000,1000,60000,dlq
        join a
        publish k
        nack 0
        dead fail 0 disk full
        why
        +1s
        why
        dead fail 0 disk full
        dead fail 0 twice
        +1999ms
        +1ms
        dead fail 0 disk full
        +4s
        dead fail 0 disk full
        +8s
        dead fail 0 disk full
        +16s
        dead fail 0 disk full
        +30s
        dead fail 0 disk full
        +29s
        why
        +1s
        dead ok 0
        why",
        expect![[r#"
            join a                 |
            publish k              | a<-0#1
            nack 0                 | failed:0#1 DLQ:0#1
            dead fail 0 disk full  |
            why                    | dead-letter copy of offset 0 failed at try 1, next try in 1.0 s: disk full
            +1s                    | 1.000s:DLQ:0#1
            why                    | dead-letter copy of offset 0 failed at try 1: disk full
            dead fail 0 disk full  |
            dead fail 0 twice      |
            +1999ms                |
            +1ms                   | 3.000s:DLQ:0#1
            dead fail 0 disk full  |
            +4s                    | 7.000s:DLQ:0#1
            dead fail 0 disk full  |
            +8s                    | 15.000s:DLQ:0#1
            dead fail 0 disk full  |
            +16s                   | 31.000s:DLQ:0#1
            dead fail 0 disk full  |
            +30s                   | 61.000s:DLQ:0#1
            dead fail 0 disk full  |
            +29s                   |
            why                    | dead-letter copy of offset 0 failed at try 7, next try in 1.0 s: disk full
            +1s                    | 91.000s:DLQ:0#1
            dead ok 0              | done:0
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn an_ack_beats_a_dead_letter_that_does_not_work() {
    check(
        "exclusive 0,30000,1000,60000,dlq
        join a
        publish k
        nack 0
        dead fail 0 no such topic
        ack 0
        +60s
        dead ok 0",
        expect![[r#"
            join a                 |
            publish k              | a<-0#1
            nack 0                 | failed:0#1 DLQ:0#1
            dead fail 0 no such topic |
            ack 0                  | done:0
            +60s                   |
            dead ok 0              |
        "#]],
    );
}

#[test]
fn a_lowered_limit_condemns_what_waits() {
    check(
        "exclusive 5,30000,1000,60000,block
        join a
        publish k*2
        nack 0 a
        +1s
        nack 0 b
        policy 1,30000,1000,60000,dlq
        +60s
        dead ok 0",
        expect![[r#"
            join a                 |
            publish k*2            | a<-0#1 a<-1#1
            nack 0 a               | failed:0#1(a)
            +1s                    | 1.000s:a<-0#2
            nack 0 b               | failed:0#2(b)
            policy 1,30000,1000,60000,dlq | DLQ:0#2(b)
            +60s                   | 30.000s:failed:1#1(ack timeout) 31.000s:a<-1#2 61.000s:failed:1#2(ack timeout) 61.000s:DLQ:1#2(ack timeout)
            dead ok 0              | done:0
        "#]],
    );
}

#[test]
fn a_log_that_cannot_be_read_is_asked_again_after_a_second() {
    check(
        "exclusive
        join a
        hold
        publish k
        why
        unreadable
        why
        +1s",
        expect![[r#"
            join a                 |
            hold                   |
            publish k              |
            why                    | reading the log
            unreadable             |
            why                    | the log cannot be read, next try in 1.0 s
            +1s                    | 1.000s:a<-0#1
        "#]],
    );
}

#[test]
fn offsets_that_the_log_does_not_have_are_skipped_aloud() {
    check(
        "exclusive
        gap 3
        publish k
        gap 2
        publish k
        join a
        ack 3
        ack 6
        gap 1
        why",
        expect![[r#"
            gap 3                  |
            publish k              |
            gap 2                  |
            publish k              |
            join a                 | gap:0..3 gap:4..6 done:0..3 done:4..6 a<-3#1 a<-6#1
            ack 3                  | done:3
            ack 6                  | done:6
            gap 1                  | gap:7..8 done:7
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn what_blocks_is_told_first_with_its_key_and_reason() {
    check(
        "keyshared 1,30000,1000,60000,block
        join a
        publish k1 k2 k3
        nack 1 bad json
        +1s
        nack 0 later
        nack 1 bad json
        +2s
        failing
        restart
        failing",
        expect![[r#"
            join a                 |
            publish k1 k2 k3       | a<-0#1 a<-1#1 a<-2#1
            nack 1 bad json        | failed:1#1(bad json)
            +1s                    | 1.000s:a<-1#2
            nack 0 later           | failed:0#1(later)
            nack 1 bad json        | blocked:1#2(bad json)
            +2s                    | 2.000s:a<-0#2
            failing                | 1#2(k2: bad json) blocks for Some(2000) 0#2(k1: later) under way
            restart                |
            failing                | 1#2(-: bad json) blocks for None 0#2(-: later) under way
        "#]],
    );
}
