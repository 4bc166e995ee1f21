# Runs as a service of a Debian that has booted: the agent's package is installed, started, fetched
# from, installed again, removed and purged. Arguments: the collector's public key, a free port.
set -eux
service=datacollect-agent
state=/var/lib/$service

as_agent() {
    setpriv --reuid=datacollect --regid=datacollect --clear-groups "$@"
}

# until_true COMMAND...: within 30 s
until_true() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        test $tries -lt 150
        sleep 0.2
    done
}

process() {
    systemctl show --property MainPID --value $service
}

# Nobody has written its file: installing starts nothing.
test "$(systemctl is-enabled $service)" = disabled
test "$(systemctl is-active $service)" = inactive

cd $state
as_agent datacollect-agent init --name S1 --serve /srv/data --collector "$1" \
    --listen "127.0.0.1:$2" -o agent.toml >/var/tmp/introduction
if as_agent datacollect-agent check agent.toml; then exit 1; fi
systemctl enable --now $service
until_true as_agent datacollect-agent check agent.toml
test "$(stat --format %U "/proc/$(process)")" = datacollect
touch /var/tmp/serves
until_true test -e /var/tmp/collected

# To install it again, as an upgrade does, starts it again.
before=$(process)
dpkg --install /var/tmp/*.deb
test "$(process)" != "$before"
until_true as_agent datacollect-agent check agent.toml

# Removed, it is stopped and gone, and its keys stay; purged, they are gone.
dpkg --remove $service
test "$(systemctl is-active $service)" != active
for path in /usr/bin/$service /usr/lib/$service /usr/lib/systemd/system/$service.service \
    /etc/systemd/system/multi-user.target.wants/$service.service; do
    test ! -e $path && test ! -L $path
done
test -e $state/agent.toml
cd /
dpkg --purge $service
test ! -e $state
echo 'tried and removed'
