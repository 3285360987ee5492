import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cloudInit, containerStart, type BootstrapOptions } from '../../backends/bootstrap'
import type { HandOver } from '../../backends/registry'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import { sealSecrets } from '../../storage/secrets'
import type { ObjectStore } from '../../storage/store'
import { SmallDisk } from '../chaos/disk'
import { FaultProxy } from '../support/fault-proxy'
import { patient } from '../support/patience'
import { S3_ENVIRONMENT, startTestS3, type TestS3 } from '../support/s3'
import { chosen } from '../support/selection'
import { until } from '../support/until'
import { filesOfUserData } from '../support/user-data'
import { Bootstrap, Bootstraps, GRANT, plainEnvironment, PYTHON, STAND_IN } from './bootstrapping'
import { useWorlds } from './world'
import { jobRootBeside } from '../support/job-root'

const BUCKET = 'bootstrap-tests'
const DYING = join(__dirname, 'dying-bootstrap.py')
const createWorld = useWorlds()
const environmentBefore = { ...process.env }
let s3: TestS3
let proxy: FaultProxy
const stores: S3Store[] = []

beforeAll(async () => {
  Object.assign(process.env, S3_ENVIRONMENT)
  s3 = await startTestS3(BUCKET)
  proxy = await FaultProxy.open(s3.url)
}, 240_000)
afterAll(async () => {
  for (const store of stores) await store.close()
  await proxy.close()
  await s3.close()
  process.env = environmentBefore
})

/** A bucket behind a proxy, under a prefix of its own. */
function bucket(): ObjectStore {
  const store = openStore(`s3://${BUCKET}/${randomUUID()}?endpoint=${proxy.url}`) as S3Store
  stores.push(store)
  return store
}

let b: Bootstraps
const setUp = async (store?: ObjectStore, program: string | undefined = STAND_IN): Promise<void> => {
  proxy.rules.length = 0
  b = await Bootstraps.make(createWorld(store), program, GRANT)
}

/** A machine that does nothing with its hand-over: says why in one line, has nothing of it, and no runner. */
async function expectNothing(bootstrap: Bootstrap, root: string, why: RegExp): Promise<void> {
  const { code, said } = await bootstrap.ended
  expect(said).toMatch(why)
  expect(said.trim().split('\n')).toHaveLength(1)
  expect(said).not.toMatch(/X-Amz|Signature|file:|http:/)
  expect(code).toBe(1)
  const files = existsSync(b.root(root)) ? readdirSync(b.root(root)) : []
  expect(files.filter((name) => !['bootstrap.lock', 'crucible-runner.pyz'].includes(name))).toEqual([])
}

/** In `npm test` each moment at which a bootstrap may die is tried with one of the stores. */
const EVERY = chosen([1], [2])[0]!

describe.each([
  ['a folder', () => undefined, 1],
  ['a bucket', bucket, EVERY],
])('the bootstrap, with its hand-over in %s,', (_, open, firstStep) => {
  beforeEach(() => setUp(open()))

  it('starts the runner with all that it needs, in files of its own user, and deletes the hand-over', async () => {
    const { handOver, send, attemptId } = await b.next()
    const options = { attemptId, send, root: b.root('m'), machineId: { literal: 'i-1' } }
    expect(await b.container(handOver, options).ended).toEqual({ code: 0, signal: null, said: '' })
    const { argv, environment, cwd } = b.started('m')!
    const root = b.root('m')
    expect(argv).toEqual([
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
      '--secret-key-file',
      join(root, 'secret.key'),
      '--grant-file',
      join(root, 'grant.json'),
    ])
    expect(cwd).toBe(root)
    const contents = { 'secret.key': b.secrets.keyOf(attemptId), 'grant.json': GRANT.trim() }
    for (const [name, text] of Object.entries({ ...contents, 'machine-id': 'i-1', 'send-name': send })) {
      expect(readFileSync(join(root, name), 'utf8')).toBe(`${text}\n`)
      expect(statSync(join(root, name)).mode & 0o777).toBe(0o600)
    }
    expect(statSync(root).mode & 0o777).toBe(0o700)
    expect(await b.isLeft(send)).toBe(false)
    // Nothing that others can see has the keys, and nothing that is left opens anything.
    const visible = JSON.stringify([argv, environment]) + readFileSync(join(root, 'hand-over.json'), 'utf8')
    for (const secret of [
      handOver.key,
      b.secrets.keyOf(attemptId),
      'the-grant',
      'X-Amz',
      'CRUCIBLE_BOOTSTRAP',
    ])
      expect(visible).not.toContain(secret)
  })

  it('continues without the hand-over in a directory that has everything', async () => {
    const { handOver, send, attemptId } = await b.next()
    const options = { attemptId, send, root: b.root('m') }
    await b.container(handOver, options).ended
    writeFileSync(join(b.root('m'), 'started.json'), '')
    expect(await b.container(handOver, options).ended).toMatchObject({ code: 0 })
    expect(b.started('m')?.argv).toContain('--secret-key-file')
  })

  it('does nothing on a machine whose hand-over was read before', async () => {
    const { handOver, send, attemptId } = await b.next()
    await b.container(handOver, { attemptId, send, root: b.root('first') }).ended
    const second = b.container(handOver, { attemptId, send, root: b.root('second') })
    await expectNothing(second, 'second', /already read, or has expired/)
  })

  it('does nothing with a hand-over that was changed, or is of another attempt', async () => {
    const { handOver, send, attemptId } = await b.next()
    const options = { attemptId, send, root: b.root('m') }
    const body = (await b.world.store.get(b.key(send)))!
    const sealed = JSON.parse(body.toString()) as { text: string }
    const text = Buffer.from(sealed.text, 'base64')
    text[5]! ^= 1
    const key = Buffer.from(handOver.key, 'hex')
    const changed = [
      JSON.stringify({ ...sealed, text: text.toString('base64') }),
      '',
      '{}',
      '[]',
      '\u00ff',
      body.subarray(0, 100).toString(),
      sealSecrets(randomBytes(32), { handOver: '{}' }, randomBytes(16)),
      sealSecrets(key, { handOver: JSON.stringify({ attemptId: 'job-b-1' }) }, randomBytes(16)),
      sealSecrets(key, {}, randomBytes(16)),
    ]
    for (const one of changed) {
      await b.world.store.put(b.key(send), one)
      await expectNothing(b.container(handOver, options), 'm', /was modified or belongs to another attempt/)
    }
    await b.world.store.put(b.key(send), body)
    await expectNothing(
      b.container({ ...handOver, key: '0'.repeat(64) }, options),
      'm',
      /was modified or belongs to another attempt/,
    )
    expect(await b.container(handOver, options).ended).toMatchObject({ code: 0 })
  })

  it('starts no other program than the runner of the order, and leaves the hand-over', async () => {
    const { handOver, send, attemptId } = await b.next()
    const options = { attemptId, send, root: b.root('m') }
    await b.world.store.put(layout.runner(b.sha256), `${STAND_IN}# changed`)
    await expectNothing(b.container(handOver, options), 'm', /is not the runner of the order/)
    await b.world.store.delete(layout.runner(b.sha256))
    await expectNothing(b.container(handOver, options), 'm', /the runner is not in the store/)
    expect(await b.isLeft(send)).toBe(true)
    await b.world.store.put(layout.runner(b.sha256), STAND_IN)
    expect(await b.container(handOver, options).ended).toMatchObject({ code: 0 })
  })

  it(
    'may be killed at any moment: the same machine continues, and another one starts only what is not yet taken',
    async () => {
      const program = join(b.world.folder, 'bootstrap.py')
      const [, text] = filesOfUserData(cloudInit({ url: '', key: '' }, { attemptId: 'x' }))
      writeFileSync(program, text!.text)
      const die = async (
        step: number,
      ): Promise<{ steps: string[]; isTaken: boolean; handOver: HandOver; options: BootstrapOptions }> => {
        const { handOver, send, attemptId } = await b.next()
        const options = { attemptId, send, root: b.root(`m-${step}`), machineId: { literal: 'i-1' } }
        const notes = join(b.world.folder, `notes-${step}`)
        const { environment } = containerStart(handOver, options)
        const dying = new Bootstrap([PYTHON, '-IS', DYING, program, notes, String(step)], {
          ...plainEnvironment(),
          ...environment,
        })
        const { signal } = await dying.ended
        expect(signal).toBe(step === 0 ? null : 'SIGKILL')
        const steps = readFileSync(notes, 'utf8').trim().split('\n')
        return { steps, isTaken: !(await b.isLeft(send)), handOver, options }
      }
      const { steps } = await die(0)
      expect(steps.filter((step) => step.startsWith('before '))).toEqual(
        [
          'making its directory',
          'GET of the document',
          'GET of the runner',
          'writing crucible-runner.pyz',
          'writing secret.key',
          'writing grant.json',
          'writing machine-id',
          'writing send-name',
          'writing last-words-url',
          'writing hand-over.json',
          steps.some((step) => step.includes('DELETE'))
            ? 'DELETE of the document'
            : `removing ${b.key('').split('/').at(-1)}`,
          'writing hand-over.json',
          'becoming the runner',
        ]
          .map((step) => `before ${step}`)
          .map((step) =>
            step.includes('removing') ? expect.stringMatching(/^before removing .*\.sealed$/) : step,
          ),
      )
      for (let step = firstStep; step <= steps.length; step += EVERY) {
        const name = `m-${step}`
        const { isTaken, handOver, options } = await die(step)
        expect([steps[step - 1], b.started(name)]).toEqual([steps[step - 1], undefined])
        const other = b.root(`other-${step}`)
        if (isTaken) {
          const idle = await b.container(handOver, { ...options, root: other }).ended
          expect([steps[step - 1], idle.code, b.started(`other-${step}`)]).toEqual([
            steps[step - 1],
            1,
            undefined,
          ])
        }
        const again = await b.container(handOver, options).ended
        expect([steps[step - 1], again]).toMatchObject([steps[step - 1], { code: 0 }])
        expect(b.started(name)?.argv).toContain('--grant-file')
        expect(await b.isLeft(options.send!)).toBe(false)
        if (!isTaken) {
          const late = await b.container(handOver, { ...options, root: other }).ended
          expect([steps[step - 1], late.code]).toEqual([steps[step - 1], 1])
        }
      }
    },
    patient(240_000),
  )
})

describe('the bootstrap, with a bucket that gives trouble,', () => {
  beforeEach(() => setUp(bucket()))

  const limited = (handOver: HandOver, options: BootstrapOptions, giveUpSeconds: number): Bootstrap => {
    const startsWithinMs = giveUpSeconds * 1_000
    const { command, environment } = containerStart(handOver, { ...options, startsWithinMs }, PYTHON)
    return new Bootstrap(command, { ...plainEnvironment(), ...environment })
  }

  it('does nothing once the URL has expired', async () => {
    const { handOver, send, attemptId } = await b.next()
    const { read } = await b.world.store.signUrls(b.key(send), 1_000)
    await sleep(2_500)
    const machine = b.container({ ...handOver, url: read }, { attemptId, send, root: b.root('m') })
    await expectNothing(machine, 'm', /already read, or has expired/)
    expect(await b.isLeft(send)).toBe(true)
  })

  it('waits for a store that fails in passing', async () => {
    const { handOver, send, attemptId } = await b.next()
    proxy.rules.push(
      { match: '^GET .*hand-overs', fault: { kind: 'answer', status: 503, code: 'SlowDown' }, times: 2 },
      { match: '^GET .*hand-overs', fault: { kind: 'cut-answer', afterBytes: 10 }, times: 1 },
      { match: '^GET .*runners', fault: { kind: 'answer', status: 500, code: 'InternalError' }, times: 1 },
      { match: '^DELETE', fault: { kind: 'lost-answer' }, times: 1 },
    )
    const { code, said } = await b.container(handOver, { attemptId, send, root: b.root('m') }).ended
    expect(code).toBe(0)
    expect(said).toMatch(/does not answer \(HTTP 503\)/)
    expect(said).not.toMatch(/X-Amz|http:/)
    expect(b.started('m')).toBeDefined()
    expect(await b.isLeft(send)).toBe(false)
  })

  it('gives up in the end, and does nothing', async () => {
    const { handOver, send, attemptId } = await b.next()
    proxy.rules.push({ match: '^GET', fault: { kind: 'hang' }, times: 99 })
    const { code, said } = await limited(handOver, { attemptId, send, root: b.root('m') }, 2).ended
    expect([code, said]).toEqual([1, 'crucible: no runner was started: the store did not answer in time\n'])
    expect(b.started('m')).toBeUndefined()
  })

  it('keeps no runner waiting for a hand-over that cannot be deleted, and deletes it at the next start', async () => {
    const { handOver, send, attemptId } = await b.next()
    proxy.rules.push({
      match: '^DELETE',
      fault: { kind: 'answer', status: 503, code: 'SlowDown' },
      times: 99,
    })
    const options = { attemptId, send, root: b.root('m') }
    const { code, said } = await limited(handOver, options, 3).ended
    expect([code, said]).toEqual([0, expect.stringContaining('could not be deleted yet')])
    expect(b.started('m')).toBeDefined()
    proxy.rules.length = 0
    await b.container(handOver, options).ended
    expect(await b.isLeft(send)).toBe(false)
  })

  it('ends at a signal while it waits', async () => {
    const { handOver, send, attemptId } = await b.next()
    proxy.rules.push({ match: '^GET', fault: { kind: 'hang' }, times: 99 })
    const bootstrap = b.container(handOver, { attemptId, send, root: b.root('m') })
    await until(() => proxy.rules[0]!.times < 99)
    bootstrap.child.kill('SIGTERM')
    expect(await bootstrap.ended).toMatchObject({ code: 143, said: '' })
  })

  it('leaves a directory to the bootstrap that is at work in it', async () => {
    const { handOver, send, attemptId } = await b.next()
    proxy.rules.push({ match: '^GET', fault: { kind: 'hang' }, times: 1 })
    const options = { attemptId, send, root: b.root('m') }
    const first = b.container(handOver, options)
    await until(() => proxy.rules[0]!.times === 0)
    const second = await b.container(handOver, options).ended
    expect(second).toMatchObject({
      code: 0,
      said: expect.stringContaining('another bootstrap is already running'),
    })
    first.child.kill('SIGKILL')
    await first.ended
    expect(await b.container(handOver, options).ended).toMatchObject({ code: 0, said: '' })
  })
})

describe('the bootstrap', () => {
  beforeEach(() => setUp())

  it('says in one sentence that a Python is too old', async () => {
    const { handOver, attemptId } = await b.next()
    const { command, environment } = containerStart(handOver, { attemptId, root: b.root('m') }, PYTHON)
    const aged = ['import sys; sys.version_info = (3, 7, 17)', command[3]!].join('; ')
    const bootstrap = new Bootstrap([...command.slice(0, 3), aged], { ...plainEnvironment(), ...environment })
    await expectNothing(bootstrap, 'm', /needs Python 3\.8 or newer, and this is 3\.7$/m)
  })

  it.each([
    ['is a file', () => writeFileSync(b.root('m'), ''), /File exists/],
    ['is below a file', () => (writeFileSync(join(b.world.folder, 'f'), ''), 'f/m'), /Not a directory/],
  ])('does nothing where its directory %s', async (_, spoil, why) => {
    const { handOver, send, attemptId } = await b.next()
    const name = spoil() ?? 'm'
    const { code, said } = await b.container(handOver, { attemptId, root: b.root(name) }).ended
    expect([code, said]).toEqual([1, expect.stringMatching(why)])
    expect(await b.isLeft(send)).toBe(true)
  })

  it.each(['a limit', 'its size'])('leaves the hand-over where the disk is full, by %s', async (kind) => {
    const { handOver, send, attemptId } = await b.next()
    const root = b.root('disk/m')
    mkdirSync(b.root('disk'))
    const disk = kind === 'a limit' ? undefined : SmallDisk.mount(b.root('disk'))
    // Only who may mount can have a disk that is really full.
    if (kind !== 'a limit' && disk === undefined) return
    const filled = new AbortController()
    const filling = disk?.fill(filled.signal)
    try {
      const { command, environment } = containerStart(handOver, { attemptId, root }, PYTHON)
      const limit = disk === undefined ? 'ulimit -f 0; ' : ''
      const shell = ['sh', '-c', `${limit}exec "$@"`, 'sh', ...command]
      const { code, said } = await new Bootstrap(shell, { ...plainEnvironment(), ...environment }).ended
      expect([code, said]).toEqual([
        1,
        expect.stringMatching(/no runner was started: (File too large|No space left)/),
      ])
      expect(await b.isLeft(send)).toBe(true)
    } finally {
      filled.abort()
      await filling
      disk?.unmount()
    }
  })

  describe('learns the id of its machine', () => {
    const idFrom = async (
      machineId: BootstrapOptions['machineId'],
      environment: NodeJS.ProcessEnv = {},
    ): Promise<string | undefined> => {
      const { handOver, attemptId } = await b.next()
      const name = `m-${randomUUID()}`
      const options = { attemptId, root: b.root(name), machineId: machineId ? machineId : undefined }
      expect(await b.container(handOver, options, environment).ended).toMatchObject({ code: 0 })
      const path = join(b.root(name), 'machine-id')
      return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined
    }

    it('from a variable or a file', async () => {
      expect(await idFrom({ variable: 'TASK_ID' }, { TASK_ID: 'ta-1' })).toBe('ta-1')
      writeFileSync(join(b.world.folder, 'id'), 'i-2\n')
      expect(await idFrom({ file: join(b.world.folder, 'id') })).toBe('i-2')
    })

    it('from a metadata service, past any proxy', async () => {
      let asked: string | undefined
      const server: Server = createServer((request, response) => {
        asked = request.headers['metadata']?.toString()
        response.end(request.url === '/json' ? '{"instances": [{"id": 17}]}' : 'i-3\n')
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const proxied = { http_proxy: 'http://127.0.0.1:1', no_proxy: '', NO_PROXY: '' }
      try {
        expect(await idFrom({ url, headers: { Metadata: 'true' } }, proxied)).toBe('i-3')
        expect(asked).toBe('true')
        expect(await idFrom({ url: `${url}/json`, path: ['instances', 0, 'id'] })).toBe('17')
      } finally {
        server.close()
      }
    })

    it.each(['', 'has space', 'ünïcode', 'x'.repeat(256), 'line\nbreak'])(
      'unless it is no id, such as %j: the runner makes a name then',
      async (literal) => expect(await idFrom({ literal })).toBeUndefined(),
    )

    it(
      'unless the provider does not report it, which costs no start',
      async () => {
        expect(await idFrom({ variable: 'TASK_ID' })).toBeUndefined()
        expect(await idFrom({ url: 'http://127.0.0.1:1/', path: ['id'] })).toBeUndefined()
        expect(await idFrom(undefined)).toBeUndefined()
      },
      patient(60_000),
    )
  })
})
