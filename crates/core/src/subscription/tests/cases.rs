//! The users' cases: scripts drawn from what people reported of other brokers.

use super::script::check;
use expect_test::expect;

/// U01: the late ack settles the message; the second owner's ack is harmless and its nack too.
#[test]
fn u01_a_late_ack_settles_the_message_wherever_it_is() {
    for end in ["ack 0", "nack 0"] {
        let script = format!(
            "shared 5,1000,100,1000,dlq
            join a
            join b
            publish m
            +1s
            +100ms
            ack 0
            {end}
            +60s
            why"
        );
        let expected = if end == "ack 0" {
            expect![[r#"
                join a                 |
                join b                 |
                publish m              | a<-0#1
                +1s                    | 1.000s:failed:0#1(ack timeout)
                +100ms                 | 1.100s:b<-0#2
                ack 0                  | done:0
                ack 0                  |
                +60s                   |
                why                    | drained: every message is finished
            "#]]
        } else {
            expect![[r#"
                join a                 |
                join b                 |
                publish m              | a<-0#1
                +1s                    | 1.000s:failed:0#1(ack timeout)
                +100ms                 | 1.100s:b<-0#2
                ack 0                  | done:0
                nack 0                 |
                +60s                   |
                why                    | drained: every message is finished
            "#]]
        };
        check(&script, expected);
    }
}

/// U02: a dead consumer's messages are with another at once, in order.
#[test]
fn u02_a_consumer_that_dies_gives_its_messages_back_at_once() {
    for (end, expected) in [
        (
            "kill a",
            expect![[r#"
        join a                 |
        publish m*3            | a<-0#1 a<-1#1 a<-2#1
        join b                 |
        kill a                 | failed:0#1(consumer gone) failed:1#1(consumer gone) failed:2#1(consumer gone) b<-0#2 b<-1#2 b<-2#2
    "#]],
        ),
        (
            "close a",
            expect![[r#"
        join a                 |
        publish m*3            | a<-0#1 a<-1#1 a<-2#1
        join b                 |
        close a                | b<-0#1 b<-1#1 b<-2#1
    "#]],
        ),
    ] {
        check(
            &format!("shared 5,300000,1000,60000,block\njoin a\npublish m*3\njoin b\n{end}"),
            expected,
        );
    }
}

/// U03 a: the attempt number survives a restart.
#[test]
fn u03_attempts_survive_a_restart() {
    check(
        "shared 5,2000,100,500,dlq
        join a
        publish p
        nack 0; +100ms; nack 0; +200ms; nack 0
        restart
        join a
        +400ms
        nack 0; +500ms; nack 0; +500ms; nack 0
        restart
        join a
        dead ok 0
        why",
        expect![[r#"
            join a                 |
            publish p              | a<-0#1
            nack 0                 | failed:0#1
            +100ms                 | 0.100s:a<-0#2
            nack 0                 | failed:0#2
            +200ms                 | 0.300s:a<-0#3
            nack 0                 | failed:0#3
            restart                |
            join a                 |
            +400ms                 | 0.700s:a<-0#4
            nack 0                 | failed:0#4
            +500ms                 | 1.200s:a<-0#5
            nack 0                 | failed:0#5
            +500ms                 | 1.700s:a<-0#6
            nack 0                 | failed:0#6 DLQ:0#6
            restart                |
            join a                 | DLQ:0#6
            dead ok 0              | done:0
            why                    | drained: every message is finished
        "#]],
    );
}

/// U03 b: a worker that dies right after each receive wears the message out; others flow.
#[test]
fn u03_silent_deaths_count() {
    check(
        "shared 2,2000,100,500,dlq window=1
        publish p q
        join a; kill a
        join a; kill a
        join a; kill a
        join a
        dead ok 0",
        expect![[r#"
            publish p q            |
            join a                 | a<-0#1
            kill a                 | failed:0#1(consumer gone)
            join a                 | a<-0#2
            kill a                 | failed:0#2(consumer gone)
            join a                 | a<-0#3
            kill a                 | failed:0#3(consumer gone) DLQ:0#3(consumer gone)
            join a                 |
            dead ok 0              | done:0 a<-1#1
        "#]],
    );
}

/// U04: three deliveries each, one dead-letter copy each, and nothing after a restart.
#[test]
fn u04_exact_number_of_deliveries() {
    check(
        "exclusive 2,500,50,200,dlq
        join a
        publish q1 q2
        nack 0..2; +50ms; nack 0..2; +100ms; nack 0..2
        dead ok 0; dead ok 1
        restart
        join a
        +10s
        why",
        expect![[r#"
            join a                 |
            publish q1 q2          | a<-0#1 a<-1#1
            nack 0..2              | failed:0#1 failed:1#1
            +50ms                  | 0.050s:a<-0#2 0.050s:a<-1#2
            nack 0..2              | failed:0#2 failed:1#2
            +100ms                 | 0.150s:a<-0#3 0.150s:a<-1#3
            nack 0..2              | failed:0#3 DLQ:0#3 failed:1#3 DLQ:1#3
            dead ok 0              | done:0
            dead ok 1              | done:1
            restart                |
            join a                 |
            +10s                   |
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn u04_without_redeliveries_the_first_failure_is_final() {
    check(
        "exclusive 0,500,50,200,dlq\njoin a\npublish q\nnack 0\ndead ok 0\n+10s",
        expect![[r#"
        join a                 |
        publish q              | a<-0#1
        nack 0                 | failed:0#1 DLQ:0#1
        dead ok 0              | done:0
        +10s                   |
    "#]],
    );
}

/// U05: gaps of 1, 2, 4, 8, 16, 32, 60, 60 seconds, for nacks as for timeouts.
#[test]
fn u05_exact_delays_after_nacks() {
    check(
        "exclusive 8,30000,1000,60000,block
        join a
        publish m
        nack 0; +999ms; +1ms
        nack 0; +2s
        nack 0; +4s
        nack 0; +8s
        nack 0; +16s
        nack 0; +32s
        nack 0; +60s
        nack 0; +60s
        nack 0; +600s",
        expect![[r#"
            join a                 |
            publish m              | a<-0#1
            nack 0                 | failed:0#1
            +999ms                 |
            +1ms                   | 1.000s:a<-0#2
            nack 0                 | failed:0#2
            +2s                    | 3.000s:a<-0#3
            nack 0                 | failed:0#3
            +4s                    | 7.000s:a<-0#4
            nack 0                 | failed:0#4
            +8s                    | 15.000s:a<-0#5
            nack 0                 | failed:0#5
            +16s                   | 31.000s:a<-0#6
            nack 0                 | failed:0#6
            +32s                   | 63.000s:a<-0#7
            nack 0                 | failed:0#7
            +60s                   | 123.000s:a<-0#8
            nack 0                 | failed:0#8
            +60s                   | 183.000s:a<-0#9
            nack 0                 | blocked:0#9
            +600s                  |
        "#]],
    );
}

#[test]
fn u05_exact_delays_after_timeouts() {
    check(
        "exclusive 8,2000,1000,60000,block\njoin a\npublish m\n+600s",
        expect![[r#"
        join a                 |
        publish m              | a<-0#1
        +600s                  | 2.000s:failed:0#1(ack timeout) 3.000s:a<-0#2 5.000s:failed:0#2(ack timeout) 7.000s:a<-0#3 9.000s:failed:0#3(ack timeout) 13.000s:a<-0#4 15.000s:failed:0#4(ack timeout) 23.000s:a<-0#5 25.000s:failed:0#5(ack timeout) 41.000s:a<-0#6 43.000s:failed:0#6(ack timeout) 75.000s:a<-0#7 77.000s:failed:0#7(ack timeout) 137.000s:a<-0#8 139.000s:failed:0#8(ack timeout) 199.000s:a<-0#9 201.000s:blocked:0#9(ack timeout)
    "#]],
    );
}

/// U06: fifty messages wait in a queue that is drained slowly; no attempt is burnt.
#[test]
fn u06_waiting_in_an_undrained_queue_burns_nothing() {
    check(
        "exclusive 2,2000,100,500,dlq
        join a room=4
        publish m*4
        +25s
        why
        drain a 1; +1s; ack 0; +25s
        drain a 1; +1s; ack 1; +25s
        kill a
        join a room=4
        drain a 2; ack 2 3
        why",
        expect![[r#"
            join a room=4          |
            publish m*4            | a<-0#1 a<-1#1 a<-2#1 a<-3#1
            +25s                   |
            why                    | offset 0 is queued for consumer `1`, whose connection takes nothing
            drain a 1              |
            +1s                    |
            ack 0                  | done:0
            +25s                   |
            drain a 1              |
            +1s                    |
            ack 1                  | done:1
            +25s                   |
            kill a                 |
            join a room=4          | a<-2#1 a<-3#1
            drain a 2              |
            ack 2 3                | done:2 done:3
            why                    | drained: every message is finished
        "#]],
    );
}

/// U09: the holder dies with two of its key; the new owner gets them first, in order. k2 belongs
/// to a, k0 to b (see the pinned owners of the ring).
#[test]
fn u09_the_next_owner_of_a_key_starts_with_what_the_dead_one_held() {
    check(
        "keyshared
        join a; join b; join c
        publish k2 k2 k2 k0 k10
        ack 0
        hold
        publish k2
        kill a
        answer
        publish k2
        ack 1
        kill b; kill c
        join a
        ack 2; ack 5; ack 6",
        expect![[r#"
            join a                 |
            join b                 |
            join c                 |
            publish k2 k2 k2 k0 k10 | a<-0#1 b<-3#1 c<-4#1
            ack 0                  | done:0 a<-1#1
            hold                   |
            publish k2             |
            kill a                 | failed:1#1(consumer gone) b<-1#2
            answer                 |
            publish k2             |
            ack 1                  | done:1 b<-2#1
            kill b                 | failed:2#1(consumer gone) failed:3#1(consumer gone) c<-2#2 c<-3#2
            kill c                 | failed:2#2(consumer gone) failed:3#2(consumer gone) failed:4#1(consumer gone)
            join a                 | a<-2#3 a<-3#3 a<-4#2
            ack 2                  | done:2 a<-5#1
            ack 5                  | done:5 a<-6#1
            ack 6                  | done:6
        "#]],
    );
}

/// U10: a nack holds its key and only that; so does a block, until a seek or another policy.
#[test]
fn u10_a_nack_holds_its_key_only() {
    check(
        "keyshared 2,5000,1000,4000,block
        join a
        publish k k k j*4
        nack 0
        ack 3 4 5 6
        +1s
        nack 0
        +2s
        ack 0; ack 1; ack 2
        why",
        expect![[r#"
            join a                 |
            publish k k k j*4      | a<-0#1 a<-3#1
            nack 0                 | failed:0#1
            ack 3 4 5 6            | done:3 a<-4#1 done:4 a<-5#1 done:5 a<-6#1 done:6
            +1s                    | 1.000s:a<-0#2
            nack 0                 | failed:0#2
            +2s                    | 3.000s:a<-0#3
            ack 0                  | done:0 a<-1#1
            ack 1                  | done:1 a<-2#1
            ack 2                  | done:2
            why                    | drained: every message is finished
        "#]],
    );
}

#[test]
fn u10_a_block_holds_its_key_only() {
    for (end, expected) in [
        (
            "seek 1",
            expect![[r#"
                join a                 |
                publish k k k j        | a<-0#1 a<-3#1
                nack 0 bad             | failed:0#1(bad)
                +1s                    | 1.000s:a<-0#2
                nack 0 bad             | failed:0#2(bad)
                +2s                    | 3.000s:a<-0#3
                nack 0 bad             | blocked:0#3(bad)
                ack 3                  | done:3
                publish new            | a<-4#1
                ack 4                  | done:4
                why                    | key `k` is blocked by offset 0 for 0.0 s at attempt 3: bad
                seek 1                 | moved:1 a<-1#1 a<-3#1 a<-4#1
                ack 0                  |
                ack 1                  | done:1 a<-2#1
                ack 2                  | done:2
                why                    | offset 3 is with consumer `1`, not acknowledged; it comes back in 5.0 s
            "#]],
        ),
        (
            "policy 3,5000,1000,4000,block",
            expect![[r#"
                join a                 |
                publish k k k j        | a<-0#1 a<-3#1
                nack 0 bad             | failed:0#1(bad)
                +1s                    | 1.000s:a<-0#2
                nack 0 bad             | failed:0#2(bad)
                +2s                    | 3.000s:a<-0#3
                nack 0 bad             | blocked:0#3(bad)
                ack 3                  | done:3
                publish new            | a<-4#1
                ack 4                  | done:4
                why                    | key `k` is blocked by offset 0 for 0.0 s at attempt 3: bad
                policy 3,5000,1000,4000,block | failed:0#3(bad) a<-0#4
                ack 0                  | done:0 a<-1#1
                ack 1                  | done:1 a<-2#1
                ack 2                  | done:2
                why                    | drained: every message is finished
            "#]],
        ),
        (
            "policy 2,5000,1000,4000,drop",
            expect![[r#"
                join a                 |
                publish k k k j        | a<-0#1 a<-3#1
                nack 0 bad             | failed:0#1(bad)
                +1s                    | 1.000s:a<-0#2
                nack 0 bad             | failed:0#2(bad)
                +2s                    | 3.000s:a<-0#3
                nack 0 bad             | blocked:0#3(bad)
                ack 3                  | done:3
                publish new            | a<-4#1
                ack 4                  | done:4
                why                    | key `k` is blocked by offset 0 for 0.0 s at attempt 3: bad
                policy 2,5000,1000,4000,drop | dropped:0 done:0 a<-1#1
                ack 0                  |
                ack 1                  | done:1 a<-2#1
                ack 2                  | done:2
                why                    | drained: every message is finished
            "#]],
        ),
        (
            "ack 0",
            expect![[r#"
                join a                 |
                publish k k k j        | a<-0#1 a<-3#1
                nack 0 bad             | failed:0#1(bad)
                +1s                    | 1.000s:a<-0#2
                nack 0 bad             | failed:0#2(bad)
                +2s                    | 3.000s:a<-0#3
                nack 0 bad             | blocked:0#3(bad)
                ack 3                  | done:3
                publish new            | a<-4#1
                ack 4                  | done:4
                why                    | key `k` is blocked by offset 0 for 0.0 s at attempt 3: bad
                ack 0                  | done:0 a<-1#1
                ack 0                  |
                ack 1                  | done:1 a<-2#1
                ack 2                  | done:2
                why                    | drained: every message is finished
            "#]],
        ),
    ] {
        check(
            &format!(
                "keyshared 2,5000,1000,4000,block
                join a
                publish k k k j
                nack 0 bad; +1s; nack 0 bad; +2s; nack 0 bad
                ack 3
                publish new
                ack 4
                why
                {end}
                ack 0; ack 1; ack 2
                why"
            ),
            expected,
        );
    }
}

/// U11: one active consumer; the standby starts where the dead one stopped; the returned one does
/// not take over; after a seek each message is with one consumer.
#[test]
fn u11_failover_has_one_active_consumer() {
    check(
        "failover
        join b
        join a
        +5s
        publish m*4
        ack 0..2
        kill b
        join b
        seek 0
        kill a; kill b
        join a; join b",
        expect![[r#"
            join b                 |
            join a                 |
            +5s                    |
            publish m*4            | b<-0#1 b<-1#1 b<-2#1 b<-3#1
            ack 0..2               | done:0 done:1
            kill b                 | failed:2#1(consumer gone) failed:3#1(consumer gone) a<-2#2 a<-3#2
            join b                 |
            seek 0                 | moved:0 a<-0#1 a<-1#1 a<-2#1 a<-3#1
            kill a                 | failed:0#1(consumer gone) failed:1#1(consumer gone) failed:2#1(consumer gone) failed:3#1(consumer gone) b<-0#2 b<-1#2 b<-2#2 b<-3#2
            kill b                 | failed:0#2(consumer gone) failed:1#2(consumer gone) failed:2#2(consumer gone) failed:3#2(consumer gone)
            join a                 | a<-0#3 a<-1#3 a<-2#3 a<-3#3
            join b                 |
        "#]],
    );
}

/// U12: a seek voids what is in flight, queued and timed; room comes back as it is drained.
#[test]
fn u12_a_seek_voids_everything_under_way() {
    check(
        "exclusive 0,1000,100,1000,dlq
        join a room=4
        publish m*9
        drain a 2
        seek 7
        ack 0
        nack 1
        ack 3
        +10s
        drain a 4
        drain a 2
        ack 7 8
        why",
        expect![[r#"
            join a room=4          |
            publish m*9            | a<-0#1 a<-1#1 a<-2#1 a<-3#1
            drain a 2              | a<-4#1 a<-5#1
            seek 7                 | void:a<-2 void:a<-3 void:a<-4 void:a<-5 moved:7
            ack 0                  |
            nack 1                 |
            ack 3                  |
            +10s                   |
            drain a 4              | a<-7#1 a<-8#1
            drain a 2              |
            ack 7 8                | done:7 done:8
            why                    | drained: every message is finished
        "#]],
    );
}

/// U15: all acked except one, then a restart: that one comes again and nothing else.
#[test]
fn u15_an_ack_hole_survives_a_restart_alone() {
    check(
        "shared 5,30000,1000,60000,block
        join a
        publish m*12
        ack 0..7 8..12
        progress
        restart
        join b
        stats
        ack 7
        progress",
        expect![[r#"
            join a                 |
            publish m*12           | a<-0#1 a<-1#1 a<-2#1 a<-3#1 a<-4#1 a<-5#1 a<-6#1 a<-7#1 a<-8#1 a<-9#1 a<-10#1 a<-11#1
            ack 0..7 8..12         | done:0 done:1 done:2 done:3 done:4 done:5 done:6 done:8 done:9 done:10 done:11
            progress               | Progress { cursor: Offset(7), finished: {Offset(8): Offset(12)}, finished_len: 4, attempts: {} }
            restart                |
            join b                 | b<-7#1
            stats                  | backlog=1 in_flight=1 consumers=1 attached=1
            ack 7                  | done:7
            progress               | Progress { cursor: Offset(12), finished: {}, finished_len: 0, attempts: {} }
        "#]],
    );
}

/// A block survives a restart, and an ack releases it before it is even read again.
#[test]
fn a_block_survives_a_restart() {
    check(
        "exclusive 0,30000,1000,60000,block window=1
        join a
        publish m*2
        nack 0 bad
        restart
        join a
        why
        restart
        stats
        ack 0
        join a
        why",
        expect![[r#"
            join a                 |
            publish m*2            | a<-0#1
            nack 0 bad             | blocked:0#1(bad)
            restart                |
            join a                 |
            why                    | blocked by offset 0 for 0.0 s at attempt 1: bad
            restart                |
            stats                  | backlog=2 blocked=1
            ack 0                  | done:0
            join a                 | a<-1#1
            why                    | offset 1 is with consumer `1`, not acknowledged; it comes back in 30.0 s
        "#]],
    );
}

/// Found by a random history: a policy that changed before the blocking message was read again.
#[test]
fn a_policy_change_after_a_restart_releases_what_is_not_read_yet() {
    check(
        "exclusive 0,30000,1000,60000,block window=1
        join a
        publish m*2
        nack 0 bad
        restart
        policy 1,30000,1000,60000,block
        join a
        stats",
        expect![[r#"
            join a                 |
            publish m*2            | a<-0#1
            nack 0 bad             | blocked:0#1(bad)
            restart                |
            policy 1,30000,1000,60000,block |
            join a                 | failed:0#1(bad) a<-0#2
            stats                  | backlog=2 ready=1 in_flight=1 consumers=1 attached=1
        "#]],
    );
}

/// Found by a random history: a window full of dead letters under way was called a missing consumer.
#[test]
fn a_window_full_of_dead_letters_says_so() {
    check(
        "keyshared 0,30000,1000,60000,dlq window=1
        join a
        publish k j
        nack 0 bad
        why
        dead ok 0",
        expect![[r#"
            join a                 |
            publish k j            | a<-0#1
            nack 0 bad             | failed:0#1(bad) DLQ:0#1(bad)
            why                    | dead-letter copy of offset 0 is being written
            dead ok 0              | done:0 a<-1#1
        "#]],
    );
}
