-- SPDX-License-Identifier: GPL-2.0-only
-- Names of containers by the paths of their groups, with the state files that the runtimes write.
local containers = require 'bpf.groups.containers'

local PODMAN, OTHER = ('dd6454010da72e98'):rep(4), ('57a7a0ed4577994d'):rep(4)
local CRIO_STATE = [[[{"id":"%s","names":["web","alias"],"image":"68756e67fea8","layer":"1a95","metadata":]]
  .. [["{\"image-name\":\"localhost/bb:1\",\"name\":\"web\",\"created-at\":1795901708}","created":"2026-11-28",]]
  .. [["flags":{"MountLabel":"","ProcessLabel":""}},{"id":"%s","names":["k8s_nginx_front-7d9_default_0f3c_0"],]]
  .. [["image":"68756e67fea8"}]]
local DOCKER_STATE = [[{"StreamConfig":{},"State":{"Running":true,"Pid":4711},"ID":"%s","MountPoints":{"/data":]]
  .. [[{"Source":"/v","Name":"volume"}},"Config":{"Hostname":"dd64"},"Image":"sha256:68","Name":"/db","Driver":"x"}]]
local CRI_STATE = [[{"ociVersion":"1.1.0","process":{"args":["nginx"],"env":["NAME=x"]},"annotations":{]]
  .. [["io.kubernetes.cri.container-name": "nginx", "io.kubernetes.cri.container-type": "container",]]
  .. [["io.kubernetes.cri.sandbox-name": "front-7d9", "io.kubernetes.cri.sandbox-namespace": "default"}}]]
local SANDBOX_STATE = [[{"annotations":{"io.kubernetes.cri.container-type":"sandbox",]]
  .. [["io.kubernetes.cri.sandbox-name":"front-7d9"}}]]

describe('the container of a group', function()
  local root

  local function write(path, text)
    os.execute(("mkdir -p '%s%s'"):format(root, path:match '^(.*)/'))
    local file = assert(io.open(root .. path, 'w'))
    file:write(text)
    file:close()
  end
  local function named(name, path, kind)
    assert.same({ name, kind or 'container' }, { containers.of(path, root) })
  end

  before_each(function()
    root = os.tmpname()
    os.remove(root)
    os.execute(("mkdir '%s'"):format(root))
  end)
  after_each(function() os.execute(("rm -rf '%s'"):format(root)) end)

  it('of podman and CRI-O', function()
    write('/var/lib/containers/storage/overlay-containers/containers.json', CRIO_STATE:format(PODMAN, OTHER))
    named('web', '/machine.slice/libpod-' .. PODMAN .. '.scope')
    named('web', '/machine.slice/libpod-' .. PODMAN .. '.scope/container/init.scope')
    named('web', '/libpod_parent/libpod-' .. PODMAN)
    named('front-7d9/nginx', '/kubepods.slice/kubepods-pod0f3c.slice/crio-' .. OTHER .. '.scope')
    named('libpod-conmon-' .. PODMAN .. '.scope', '/machine.slice/libpod-conmon-' .. PODMAN .. '.scope', 'unit')
  end)

  it('has no name of the next one in the list', function()
    write('/var/lib/containers/storage/overlay-containers/containers.json',
      CRIO_STATE:format(PODMAN, OTHER):gsub('"names":%["web","alias"%],', '', 1))
    named(PODMAN:sub(1, 12), '/libpod_parent/libpod-' .. PODMAN, 'unnamed')
  end)

  it('has no name if something else is where a runtime keeps its state', function()
    local folder = '/var/lib/containers/storage/overlay-containers'
    local path = root .. folder .. '/containers.json'
    local function finds_nothing(command)
      assert.equal(0, os.execute(("rm -f '%s'; %s"):format(path, command)))
      named(PODMAN:sub(1, 12), '/libpod_parent/libpod-' .. PODMAN, 'unnamed')
    end
    write(folder .. '/real.json', CRIO_STATE:format(PODMAN, OTHER))
    finds_nothing(("mkfifo '%s'"):format(path))
    finds_nothing(("ln -s /dev/zero '%s'"):format(path))
    finds_nothing(("ln -s real.json '%s'"):format(path))
    finds_nothing(("mkdir '%s' && mv '%s' '%s.old'"):format(path, path, path))
    finds_nothing(("cp '%s/real.json' '%s' && truncate -s 1T '%s'"):format(root .. folder, path, path))
    write(folder .. '/containers.json', CRIO_STATE:format(PODMAN, OTHER):gsub('web', ('w'):rep(1000)))
    named(PODMAN:sub(1, 12), '/libpod_parent/libpod-' .. PODMAN, 'unnamed')
  end)

  it('of podman without root', function()
    write('/etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000:,,,:/home/me:/bin/sh\n')
    write('/home/me/.local/share/containers/storage/overlay-containers/containers.json',
      CRIO_STATE:format(PODMAN, OTHER))
    named('web', '/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-' .. PODMAN .. '.scope/container')
    named(PODMAN:sub(1, 12), '/user.slice/user-100.slice/user@100.service/user.slice/libpod-' .. PODMAN .. '.scope',
      'unnamed')
  end)

  it('of Docker', function()
    write('/var/lib/docker/containers/' .. PODMAN .. '/config.v2.json', DOCKER_STATE:format(PODMAN))
    named('db', '/system.slice/docker-' .. PODMAN .. '.scope')
    named('db', '/docker/' .. PODMAN)
    named('db', '/docker/' .. PODMAN .. '/docker/' .. OTHER) -- one that runs in it
    write('/var/lib/docker/containers/' .. OTHER .. '/config.v2.json',
      (DOCKER_STATE:format(OTHER):gsub('"Hostname"', '"Labels":{"Driver":"x","Name":"/other"},%0')))
    named('db', '/docker/' .. OTHER)
  end)

  it('of containerd', function()
    local tasks = '/run/containerd/io.containerd.runtime.v2.task/'
    write(tasks .. 'k8s.io/' .. PODMAN .. '/config.json', CRI_STATE)
    write(tasks .. 'k8s.io/' .. OTHER .. '/config.json', SANDBOX_STATE)
    write(tasks .. 'default/' .. ('a'):rep(64) .. '/config.json', '{"annotations":{"nerdctl/name":"cache"}}')
    local pod = '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f3c_11.slice/'
    named('front-7d9/nginx', pod .. 'cri-containerd-' .. PODMAN .. '.scope')
    named('front-7d9', pod .. 'cri-containerd-' .. OTHER .. '.scope')
    named('cache', '/system.slice/nerdctl-' .. ('a'):rep(64) .. '.scope')
  end)

  it('of Kubernetes, by the files of the kubelet', function()
    write('/var/log/containers/front-7d9_default_nginx-' .. PODMAN .. '.log', '')
    write('/var/log/pods/default_front-7d9_0f3c0000-11/nginx/0.log', '')
    named('front-7d9/nginx', '/kubepods/burstable/pod0f3c0000-11/' .. PODMAN)
    named('front-7d9', '/kubepods/burstable/pod0f3c0000-11', 'pod')
    named('front-7d9', '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f3c0000_11.slice', 'pod')
    named('pod 0f3c0000-22', '/kubepods/pod0f3c0000-22', 'pod')
  end)

  it('of systemd-nspawn and LXC', function()
    named('build', '/machine.slice/machine-build.scope/payload/system.slice/ssh.service')
    named('build', '/machine.slice/systemd-nspawn@build.service/payload')
    named('old', '/lxc.payload.old/system.slice/cron.service')
    named('old', '/lxc/old')
  end)

  it('is a short id if no runtime has it', function()
    named(PODMAN:sub(1, 12), '/system.slice/docker-' .. PODMAN .. '.scope', 'unnamed')
    write('/var/lib/docker/containers/' .. PODMAN .. '/config.v2.json', '{ truncat')
    named(PODMAN:sub(1, 12), '/docker/' .. PODMAN, 'unnamed')
  end)

  it('is a systemd unit or a path if there is none', function()
    named('ssh.service', '/system.slice/ssh.service', 'unit')
    named('db.service', '/user.slice/user-0.slice/user@0.service/app.slice/db.service', 'unit')
    named('session-3.scope', '/user.slice/user-0.slice/session-3.scope', 'unit')
    named('/web', '/web', 'group')
    named('/', '/', 'group')
    named('/deadbeef', '/deadbeef', 'group')
  end)
end)
