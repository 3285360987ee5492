import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { cloudInit, containerStart, readRunnerFile } from '../../backends/bootstrap'
import { CLOCK_SLACK_MS } from '../../core/time/time'
import { until } from '../support/until'
import { filesOfUserData } from '../support/user-data'
import {
  Bootstrap,
  Bootstraps,
  GRANT,
  makePrograms,
  plainEnvironment,
  PYTHON,
  STAND_IN,
} from './bootstrapping'
import { useWorlds } from './world'
import { jobRootBeside } from '../support/job-root'

const KIB = 1024
/** A URL with a session's token is this long at most; no compression makes a token shorter. */
const TOKEN = randomBytes(1_250).toString('hex')
const HAND_OVER = {
  url: `https://bucket.s3.eu-west-1.amazonaws.com/${TOKEN}`,
  lastWordsUrl: `https://bucket.s3.eu-west-1.amazonaws.com/words/${TOKEN}`,
  key: '0f'.repeat(32),
}
const createWorld = useWorlds()
let b: Bootstraps

/** A machine as cloud-init boots it, with its files below the test's own folder, and programs of a system that only note their calls. */
class Vm {
  readonly state: string
  readonly programs: ReturnType<typeof makePrograms>
  /** The path of each file of the user data. */
  readonly files: string[]

  constructor(userData: string, scripts: Record<string, string>) {
    const folder = join(b.world.folder, 'vm')
    this.state = join(folder, 'var/lib/crucible')
    this.programs = makePrograms(join(folder, 'bin'), { shutdown: '', ...scripts })
    this.files = filesOfUserData(userData).map(({ path, permissions, text }) => {
      mkdirSync(dirname(folder + path), { recursive: true })
      // The machine's own root is not this one's.
      writeFileSync(folder + path, text.replaceAll('/var/lib/crucible', this.state), {
        mode: Number.parseInt(permissions, 8),
      })
      return folder + path
    })
  }

  boot(path = this.programs.path): Bootstrap {
    return new Bootstrap(['sh', this.files.at(-1)!], { ...plainEnvironment(), PATH: path })
  }
}

const NO_SYSTEMD = {
  'systemd-run': 'echo "System has not been booted with systemd" >&2; exit 1',
  systemctl: 'exit 1',
}
/** A unit of the runner has begun at once. */
const BEGINS = 'for each; do [ "$before" != --root ] || : >"$each/runner.json"; before=$each; done'
const SYSTEMD = { 'systemd-run': BEGINS, systemctl: 'exit 3' }

beforeEach(async () => {
  b = await Bootstraps.make(createWorld(), STAND_IN, GRANT)
})

describe('the user data of a machine', () => {
  it('is small, and nothing in it looks like a script', () => {
    const userData = cloudInit(HAND_OVER, { attemptId: 'job-a-1', send: 'job-a-1-s1' })
    expect(userData.length).toBeLessThan(12 * KIB)
    expect(userData).toMatch(/^#cloud-config\n\{.*\}\n$/)
    expect(userData.slice(1)).not.toMatch(/#!|\b(?:sh|bash|python3?|curl|wget|exec|eval|import)\b/)
    for (const { path, permissions, text } of filesOfUserData(userData)) {
      expect(permissions).toBe(path.endsWith('/crucible') ? '0700' : '0600')
      if (path.endsWith('.py')) expect(text.length).toBeLessThan(16 * KIB)
    }
  })

  it('holds the key and the URL in the file of parameters only', () => {
    const files = filesOfUserData(cloudInit(HAND_OVER, { attemptId: 'job-a-1' }))
    const withKeys = files.filter(({ text }) => Object.values(HAND_OVER).some((one) => text.includes(one)))
    expect(withKeys.map(({ path }) => path)).toEqual(['/var/lib/crucible/bootstrap.json'])
  })

  it('starts the runner as a unit, and the timer that ends the machine without it', async () => {
    const { handOver, send, attemptId } = await b.next(50_000)
    const vm = new Vm(cloudInit(handOver, { attemptId, send }), SYSTEMD)
    expect(await vm.boot().ended).toMatchObject({ code: 0, said: 'crucible: the runner was started\n' })
    const root = join(vm.state, attemptId)
    const log = vm.programs.log('systemd-run')
    const [timer, runner] = log
      .split('--unit=')
      .slice(1)
      .map((text) => text.trim().split('\n'))
    expect(timer).toEqual(
      expect.arrayContaining(['crucible-dead-man', '--property=Restart=always', 'machine-timer', vm.state]),
    )
    expect(timer!.slice(-2)).toEqual([`${50_000 + CLOCK_SLACK_MS}`, expect.stringMatching(/^\d+$/)])
    expect(runner).toEqual(
      expect.arrayContaining([
        'crucible-runner',
        '--property=KillMode=mixed',
        '--property=TimeoutStopSec=120',
      ]),
    )
    const at = runner!.indexOf('python3')
    expect(runner!.slice(at)).toEqual([
      'python3',
      '-IS',
      join(root, 'crucible-runner.pyz'),
      'run',
      '--store',
      b.world.store.url,
      '--job',
      b.world.jobId,
      '--attempt',
      '1',
      '--root',
      root,
      '--job-root',
      jobRootBeside(root, b.world.jobId),
      '--power-off',
      `test -e ${root}/runner.json || sleep 5; shutdown -h now`,
      '--secret-key-file',
      join(root, 'secret.key'),
      '--grant-file',
      join(root, 'grant.json'),
    ])
    for (const secret of [handOver.key, b.secrets.keyOf(attemptId), 'the-grant', '.sealed'])
      expect(log).not.toContain(secret)
    expect(vm.programs.log('shutdown')).toBe('')
    expect(await b.isLeft(send)).toBe(false)
  })

  it('leaves a runner alone that is at work', async () => {
    const { handOver, send, attemptId } = await b.next()
    const vm = new Vm(cloudInit(handOver, { attemptId, send }), { ...SYSTEMD, systemctl: 'exit 0' })
    expect(await vm.boot().ended).toMatchObject({ code: 0, said: expect.stringContaining('already running') })
    expect(vm.programs.log('systemd-run')).toBe('')
    expect(await b.isLeft(send)).toBe(true)
  })

  it('starts the runner at the next boot, too', async () => {
    const { handOver, send, attemptId } = await b.next()
    const vm = new Vm(cloudInit(handOver, { attemptId, send }), SYSTEMD)
    await vm.boot().ended
    expect(await vm.boot().ended).toMatchObject({ code: 0 })
    expect(vm.programs.log('systemd-run').split('--unit=crucible-runner')).toHaveLength(3)
  })

  it.each([
    ['does not run', NO_SYSTEMD],
    ['is not there', {}],
  ])('starts the runner as a process of its own where systemd %s', async (_, scripts) => {
    const { handOver, send, attemptId } = await b.next()
    const vm = new Vm(cloudInit(handOver, { attemptId, send }), scripts)
    const path = Object.keys(scripts).length > 0 ? vm.programs.path : join(b.world.folder, 'vm/bin')
    if (path !== vm.programs.path) {
      symlinkSync(
        execFileSync(PYTHON, ['-c', 'import sys; print(sys.executable)']).toString().trim(),
        join(path, 'python3'),
      )
      symlinkSync('/bin/sh', join(path, 'sh'))
    }
    expect(await vm.boot(path).ended).toMatchObject({ code: 0 })
    const started = join(vm.state, attemptId, 'started.json')
    await until(() => existsSync(started) && readFileSync(started, 'utf8').endsWith('}'))
    const { argv, environment } = JSON.parse(readFileSync(started, 'utf8')) as {
      argv: string[]
      environment: object
    }
    expect(argv).toEqual(expect.arrayContaining(['--power-off', expect.stringMatching(/; shutdown -h now$/)]))
    expect(environment).toMatchObject({ HOME: '/root' })
    const timer = join(vm.state, attemptId, 'timer.json')
    await until(() => existsSync(timer) && readFileSync(timer, 'utf8').includes('"machine-timer"'))
  })

  it('powers the machine off if there is nothing to do', async () => {
    const { handOver, send, attemptId } = await b.next()
    await b.world.store.delete(b.key(send))
    const vm = new Vm(cloudInit(handOver, { attemptId, send }), SYSTEMD)
    expect(await vm.boot().ended).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^crucible: no runner was started: .*\n$/),
    })
    expect(vm.programs.log('shutdown')).toBe('-h\nnow\n')
    expect(vm.programs.log('systemd-run')).toBe('')
  })

  it('leaves the machine on where that is asked for', async () => {
    const { handOver, send, attemptId } = await b.next()
    const options = { attemptId, send, powersOff: false }
    const vm = new Vm(cloudInit(handOver, options), SYSTEMD)
    expect(await vm.boot().ended).toMatchObject({ code: 0 })
    expect(vm.programs.log('systemd-run')).not.toMatch(/power-off|dead-man/)
    const { handOver: other } = await b.next()
    await b.world.store.delete(b.key(send.replace(/1$/, '2')))
    const idle = new Vm(cloudInit(other, { ...options, root: `${vm.state}/other` }), SYSTEMD)
    expect(await idle.boot().ended).toMatchObject({ code: 1 })
    expect(idle.programs.log('shutdown')).toBe('')
  })

  it('says that the image has no Python, and powers the machine off', async () => {
    const { handOver, send, attemptId } = await b.next()
    const vm = new Vm(cloudInit(handOver, { attemptId, send }), {})
    const path = join(b.world.folder, 'vm/bin')
    symlinkSync('/bin/sh', join(path, 'sh'))
    expect(await vm.boot(path).ended).toMatchObject({ code: 1, said: 'crucible: the image has no python3\n' })
    expect(vm.programs.log('shutdown')).toBe('-h\nnow\n')
    expect(spawnSync('sh', ['-n', vm.files.at(-1)!], { encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    })
  })
})

describe('the last words of a machine that starts no runner', () => {
  let server: Server
  let put: string[]
  let lastWordsUrl: string

  beforeEach(async () => {
    put = []
    server = createServer((request, response) => {
      void request.toArray().then((parts) => {
        put.push(`${request.method} ${Buffer.concat(parts).toString()}`)
        response.end()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    lastWordsUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/words?X-Amz-Signature=ab&x=1`
  })
  afterEach(() => void server.close())

  /** Programs of the host that stay on a machine without Python. */
  const keep = (...names: string[]): string => {
    const path = join(b.world.folder, 'vm/bin')
    for (const name of names)
      symlinkSync(
        execFileSync('sh', ['-c', `command -v ${name}`])
          .toString()
          .trim(),
        join(path, name),
      )
    return path
  }

  it.each([
    ['has no Python', {}, 'the image has no python3'],
    [
      'has a Python that cannot run',
      { python3: 'echo "error while loading shared libraries: libz.so.1" >&2; exit 127' },
      'the start script ended with 127: error while loading shared libraries: libz.so.1',
    ],
  ])('are in the store if it %s', async (_, scripts, words) => {
    const { handOver, send, attemptId } = await b.next()
    const vm = new Vm(cloudInit({ ...handOver, lastWordsUrl }, { attemptId, send }), scripts)
    expect(await vm.boot(keep('sh', 'sed', 'tail', 'curl')).ended).toMatchObject({ code: 1 })
    expect(put).toEqual([`PUT ${words}`])
    expect(vm.programs.log('shutdown')).toBe('-h\nnow\n')
  })

  it.each([
    ['its directory cannot be made', 'File exists'],
    ['the hand-over was read before', 'the hand-over was already read, or has expired'],
  ])('are in the store if %s', async (name, words) => {
    const { handOver, send, attemptId } = await b.next()
    const vm = new Vm(cloudInit({ ...handOver, lastWordsUrl }, { attemptId, send }), SYSTEMD)
    if (name.startsWith('its directory')) writeFileSync(join(vm.state, attemptId), '')
    else await b.world.store.delete(b.key(send))
    expect(await vm.boot().ended).toMatchObject({ code: 1 })
    expect(put).toEqual([`PUT ${words}`])
  })
})

describe('the command of a container', () => {
  it('has no parameters, and fits', () => {
    const { command, environment } = containerStart(HAND_OVER, { attemptId: 'job-a-1' })
    expect(JSON.stringify(command)).not.toContain(HAND_OVER.key)
    expect(JSON.stringify(command).length).toBeLessThan(12 * KIB)
    expect(Object.keys(environment)).toEqual(['CRUCIBLE_BOOTSTRAP'])
  })
})

describe('the programs that start runners', () => {
  it('are the ones of the repository, without their comments', () => {
    const [, program] = filesOfUserData(cloudInit(HAND_OVER, { attemptId: 'job-a-1' }))
    const lines = readRunnerFile('bootstrap.py').split('\n')
    const code = lines.filter((line) => /^(?:def|class|import) /.test(line))
    for (const line of code) expect(program!.text).toContain(line)
    expect(program!.text).not.toMatch(/"""|^\s*#/m)
  })
})
