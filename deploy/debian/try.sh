#!/bin/sh
# Installs the package $1 in a copy of this machine that is thrown away, runs the broker as its unit
# would, removes and purges it. To be run as root in a mount namespace of its own:
#
#   unshare --mount --pid --fork sh deploy/debian/try.sh danube.deb
set -eu

fail() {
    echo "error: $*" >&2
    exit 1
}

package=$(readlink -f "$1")
# In memory, and gone with the namespace.
mount -t tmpfs -o size=2g danube-try /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work danube-try /mnt/root
mount -t proc proc /mnt/root/proc
mount --bind /dev /mnt/root/dev
cp "$package" /mnt/root/danube.deb
# No service is started while a package is installed: there is no init in here.
printf '#!/bin/sh\nexit 101\n' >/mnt/root/usr/sbin/policy-rc.d
chmod +x /mnt/root/usr/sbin/policy-rc.d
in_copy() { chroot /mnt/root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }

before=$(in_copy sh -c 'ls -d /etc/danube /var/lib/danube /usr/bin/danube /usr/share/doc/danube 2>/dev/null' || true)
[ -z "$before" ] || fail "this machine has the package already: $before"

echo "-- install"
in_copy dpkg --install /danube.deb
[ "$(in_copy stat -c '%U:%G %a' /var/lib/danube)" = 'danube:danube 750' ] || fail 'the data directory'
in_copy danube version --json
in_copy test -L /etc/systemd/system/multi-user.target.wants/danube.service || fail 'not enabled'

echo "-- the unit"
if in_copy sh -c 'command -v systemd-analyze' >/dev/null; then
    in_copy systemd-analyze verify danube.service
    # 10 is no protection at all.
    in_copy systemd-analyze security --offline=true --threshold=25 --no-pager danube.service | tail -1
fi

echo "-- run as the unit runs it"
run_as=$(in_copy sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/danube.service)
sed -i 's/:6650$/:0/; s/:50051$/:0/; s/:8080$/:0/' /mnt/root/etc/danube/danube.yml
mkfifo /mnt/said
# Each of them becomes the next, so that the process we stop is the broker itself.
(exec chroot /mnt/root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin setpriv --reuid=danube --regid=danube --clear-groups --inh-caps=-all --no-new-privs \
    sh -c "cd /var/lib/danube && exec $run_as") >/mnt/said 2>/mnt/log &
broker=$!
read -r said </mnt/said
case $said in
    'danube ready '*) echo "$said" ;;
    *) cat /mnt/log >&2; fail "no ready line: $said" ;;
esac
http=$(echo "$said" | sed -n 's/.* http=http:\/\/\([^ ]*\).*/\1/p')
admin=$(echo "$said" | sed -n 's/.* admin=\([^ ]*\).*/\1/p')
client=$(echo "$said" | sed -n 's/.* broker=\([^ ]*\).*/\1/p')
in_copy danube health --http-addr "$http"
in_copy danube ctl --endpoint "$admin" topics create /default/jobs --intent task_queue
in_copy danube produce --service-addr "$client" --topic /default/jobs --message hello
kill -TERM "$broker"
wait "$broker" || fail "it did not stop well: $(cat /mnt/log)"
[ "$(in_copy stat -c %U /var/lib/danube/wal)" = danube ] || fail 'the log belongs to somebody else'

echo "-- remove"
in_copy dpkg --remove danube
[ ! -e /mnt/root/usr/bin/danube ] || fail 'the binary is still there'
[ -e /mnt/root/etc/danube/danube.yml ] || fail 'the configuration is gone after a mere removal'
[ -d /mnt/root/var/lib/danube/wal ] || fail 'the messages are gone'

echo "-- purge"
in_copy dpkg --purge danube
[ ! -e /mnt/root/etc/danube ] || fail 'the configuration is still there'
[ -d /mnt/root/var/lib/danube/wal ] || fail 'the messages are gone'
in_copy getent passwd danube >/dev/null || fail 'messages without their owner'

echo "-- once more, without messages"
rm -r /mnt/root/var/lib/danube
in_copy dpkg --install /danube.deb >/dev/null
in_copy dpkg --purge danube >/dev/null
[ ! -e /mnt/root/var/lib/danube ] || fail 'an empty data directory is left'
! in_copy getent passwd danube >/dev/null || fail 'the user is left'
left=$(in_copy sh -c 'find /bin /boot /etc /lib /opt /run /sbin /srv /usr /var -xdev -path /var/log -prune -o -name "*danube*" -newer /danube.deb -print' | head || true)
[ -z "$left" ] || fail "left behind: $left"
echo "the package installs, runs, and goes without a trace"
