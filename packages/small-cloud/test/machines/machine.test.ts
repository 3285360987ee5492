import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { gzipSync } from 'node:zlib'
import { until } from '../support/until'
import { HAS_NAMESPACES, KINDS, sh, uniqueSleep, useMachines } from './machines'
import { patient } from '../support/patience'

const createWorld = useMachines()
const HOST_SECRET = 'CRUCIBLE_TEST_HOST_SECRET'

/** Programs that run as services have no HOME; on a host without namespaces there is one, of the machine. */
const PLACES = 'd=${STATE_DIRECTORY:-/var/lib/crucible}; h=${HOME:-/root}; mkdir -p "$d"'

beforeEach(() => {
  process.env[HOST_SECRET] = 'for the host only'
})
afterEach(() => {
  delete process.env[HOST_SECRET]
})

describe.each(KINDS)('a machine of %s', (enclosure) => {
  it('runs its user data, whatever its interpreter, and shows it on the console', async () => {
    const world = createWorld()
    const machine = world.create({
      enclosure,
      userData: '#!/usr/bin/env python3\nimport sys\nprint("from", sys.argv[0])\nsys.exit(4)\n',
    })
    await machine.boot()
    await until(async () => (await machine.console()).includes('user data ended with 4'))
    expect(await machine.console()).toMatch(/booted[^]*from .*part-001[^]*ended with 4/)
    expect((await sh(machine, 'cat "${0%/lib/*}/log/cloud-init-output.log"')).stdout).toContain('part-001')
  })

  it('has the hostname that it is given, where it is isolated', async () => {
    const machine = createWorld().create({ enclosure, hostname: 'job-42-send-1' })
    await machine.boot()
    const isOwn = (await sh(machine, 'hostname')).stdout.trim() === 'job-42-send-1'
    expect(isOwn).toBe(enclosure === 'namespaces')
  })

  it('writes the files of a cloud-config once, and runs its scripts at every boot', async () => {
    const world = createWorld()
    const script = '#!/bin/sh\necho run >>/var/lib/things/runs\n'
    const content = gzipSync(script).toString('base64')
    const write_files = [
      { path: '/var/lib/things/note', content: 'in /var/lib/things' },
      { path: '/var/lib/cloud/scripts/per-boot/go', permissions: '0700', encoding: 'gz+b64', content },
    ]
    const spec = {
      id: 'i-00000000000000002',
      enclosure,
      userData: `#cloud-config\n${JSON.stringify({ write_files })}\n`,
    }
    for (const runs of ['run\n', 'run\nrun\n']) {
      const machine = world.create(spec)
      await machine.boot()
      await until(async () => /user data ended with 0\n$/.test(await machine.console()))
      expect((await sh(machine, 'cat "${0%/lib/*}/lib/things/runs"')).stdout).toBe(runs)
      await machine.kill()
    }
  })

  it('says on the console why it does not run user data of another kind', async () => {
    const machine = createWorld().create({ enclosure, userData: '#cloud-config\nruncmd: [true]\n' })
    await machine.boot()
    expect(await machine.console()).toContain('user data is not run')
  })

  it('keeps its disk when it is off, and runs its user data at the first boot only', async () => {
    const world = createWorld()
    const spec = {
      id: 'i-00000000000000001',
      enclosure,
      userData: '#!/bin/sh\necho here >>"${0%/lib/*}/log/runs"\n',
    }
    const first = world.create(spec)
    await first.boot()
    await until(async () => (await first.console()).includes('user data ended with 0'))
    await first.kill()
    const again = world.create(spec)
    await again.boot()
    expect((await sh(again, 'cat "${0%/lib/*}/log/runs"')).stdout).toBe('here\n')
    expect(await again.console()).toMatch(/ended with 0[^]*booted[^]*has been run at the first boot/)
  })

  it('takes as long to boot as configured, and is not there before', async () => {
    const machine = createWorld().create({ enclosure, bootMs: 600, userData: '#!/bin/sh\ndate +%s%3N\n' })
    const started = Date.now()
    const booted = machine.boot()
    await expect(sh(machine, 'true')).rejects.toThrow('is off')
    await booted
    expect(Date.now() - started).toBeGreaterThanOrEqual(590)
  })

  it('knows its own environment and nothing of the host', async () => {
    const machine = createWorld().create({ enclosure, environment: { AWS_ENDPOINT_URL: 'http://cloud' } })
    await machine.boot()
    const { stdout } = await sh(machine, 'env; command -v node npm jest; command -v systemctl')
    expect(stdout).toContain('AWS_ENDPOINT_URL=http://cloud\n')
    expect(stdout).toContain(`AWS_EC2_METADATA_SERVICE_ENDPOINT=${machine.metadataEndpoint}\n`)
    expect(stdout).not.toContain(HOST_SECRET)
    expect(stdout).not.toMatch(/\/(?:node|npm|jest)$/m)
    expect(stdout).toMatch(/\/bin\/systemctl$/m)
  })

  it('has a disk of its own, where state, home and temporary files go', async () => {
    const world = createWorld()
    const [one, other] = [world.create({ enclosure }), world.create({ enclosure })]
    await Promise.all([one.boot(), other.boot()])
    const write = `${PLACES}; echo mine > "$d/f"; echo > "$(mktemp)"; echo > "$h/g"; cat "$d/f"`
    expect(await sh(one, write)).toMatchObject({ exitCode: 0, stdout: 'mine\n', stderr: '' })
    expect(await sh(other, `${PLACES}; ls "$d" "$h/g" "$h"`)).toMatchObject({
      stdout: expect.not.stringMatching(/^[fg]$/m),
      stderr: expect.stringContaining('No such file'),
    })
  })

  it('is never root of this host', async () => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const sleep = uniqueSleep()
    await sh(machine, `${sleep.command} &`)
    await until(() => sleep.pids().length === 1)
    const { stdout } = spawnSync('ps', ['-o', 'uid=', '-p', String(sleep.pids()[0])], { encoding: 'utf8' })
    expect(Number(stdout)).toBeGreaterThan(0)
    const { stdout: kept } = await sh(
      machine,
      'touch /usr/x /etc/x 2>/dev/null; ls /usr/x /etc/x 2>/dev/null',
    )
    expect(kept).toBe('')
  })
})

// Machines of an ordinary user all run as that user.
const itAsRoot = HAS_NAMESPACES && process.getuid!() === 0 ? it : it.skip

describe("a machine of root's simulator", () => {
  itAsRoot('finds no file of another machine after it has unmounted its own folders', async () => {
    const world = createWorld()
    const [one, other] = [world.create(), world.create()]
    await Promise.all([one.boot(), other.boot()])
    await sh(other, 'echo key > /var/lib/crucible/key; chmod -R a+rX /var/lib/crucible')
    const disk = `${world.directory}/${other.id}`
    const places = ['/tmp', '/var', '/run', '/root', '/dev/shm', '/proc']
    const { stdout } = await sh(
      one,
      `PATH=/usr/sbin:/usr/bin:/sbin:/bin
for place in ${places.join(' ')}; do umount -l $place; done
cat ${disk}/var/lib/crucible/key ${disk}/run/machine/machine.json /proc/*/root${disk}/var/lib/crucible/key
touch ${disk}/stranger ${disk}/tmp/stranger && echo written
ls ${disk} ${disk}/tmp`,
    )
    expect(stdout).toBe('')
  })
})

describe.each(KINDS)('the agent on a machine of %s', (enclosure) => {
  it('hands back status and both outputs, however long', async () => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const answer = await sh(machine, 'seq 1 20000\necho wrong >&2\nexit 3')
    expect(answer).toMatchObject({ exitCode: 3, stderr: 'wrong\n', timedOut: false })
    expect(answer.stdout.split('\n')).toHaveLength(20_001)
  })

  it('runs in the folder and with the variables that it is given, by the interpreter that the script names', async () => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const answer = await machine.run({
      id: 'a',
      lines: ['#!/usr/bin/env python3', 'import os', 'print(os.getcwd(), os.environ["GREETING"])'],
      timeoutMs: patient(20_000),
      workingDirectory: '/etc',
      environment: { GREETING: 'hello' },
    })
    expect(answer).toMatchObject({ exitCode: 0, stdout: '/etc hello\n' })
    const missing = { id: 'b', lines: ['true'], timeoutMs: patient(20_000), workingDirectory: '/nowhere' }
    expect((await machine.run(missing)).exitCode).not.toBe(0)
  })

  it('runs a command that is delivered twice two times', async () => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const twice = {
      id: 'same',
      lines: ['echo x >> "${TMPDIR:-/tmp}/count"', 'sleep 0.2'],
      timeoutMs: patient(20_000),
    }
    await Promise.all([machine.run(twice), machine.run(twice)])
    expect((await sh(machine, 'cat "${TMPDIR:-/tmp}/count"')).stdout).toBe('x\nx\n')
  })

  it('does not wait for what the script leaves behind', async () => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const sleep = uniqueSleep()
    expect(await sh(machine, `${sleep.command} &\necho done`)).toMatchObject({
      exitCode: 0,
      stdout: 'done\n',
    })
    await until(() => sleep.pids().length === 1)
  })

  it('kills the group of a script that takes too long, or that is cancelled, and nothing that left the group', async () => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const [inside, left] = [uniqueSleep(), uniqueSleep()]
    const late = await sh(machine, `echo begun\nsetsid ${left.command} &\n${inside.command}`, 2500)
    expect(late).toMatchObject({ exitCode: 137, timedOut: true, stdout: 'begun\n' })
    await until(() => inside.pids().length === 0)
    expect(left.pids()).toHaveLength(1)
    const cancelled = machine.run({ id: 'c', lines: [inside.command], timeoutMs: 60_000 })
    await until(() => inside.pids().length === 1)
    machine.cancel('c')
    machine.cancel('unknown')
    expect(await cancelled).toMatchObject({ exitCode: 137, timedOut: false })
    expect(inside.pids()).toEqual([])
  })

  it('never answers for a machine that died', async () => {
    const machine = createWorld().create({ enclosure })
    await machine.boot()
    const sleep = uniqueSleep()
    const running = sh(machine, sleep.command)
    running.catch(() => undefined)
    await until(() => sleep.pids().length === 1)
    await machine.kill()
    await expect(running).rejects.toThrow('is off')
    await expect(sh(machine, 'true')).rejects.toThrow('is off')
  })
})
