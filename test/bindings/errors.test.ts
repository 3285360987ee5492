/** What the Python package `truffle` raises, and when. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { TruffleAccount } from '../cli/truffle/account'
import { fakeReservation } from '../cli/truffle/fake-region'
import { REGIONS, runOn } from '../cli/truffle/drawn'
import { Bridge, type Ran } from './bridge'

jest.setTimeout(120_000)

let account: TruffleAccount
let bridge: Bridge
/** Executables that answer as they should not. */
const folder = mkdtempSync(join(tmpdir(), 'executables-'))

/** A program whose whole output is known. */
function executable(name: string, script: string): string {
  const path = join(folder, name)
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return path
}

beforeAll(async () => {
  account = await TruffleAccount.open({
    reservations: [
      {
        kind: 'capacity-block',
        type: 'p5.48xlarge',
        zone: 'us-east-1a',
        count: 8,
        starts: '24h',
        ends: '96h',
      },
    ],
  })
  bridge = await Bridge.open(({ args, environment }) => {
    const lost = environment['LOST']
    if (lost === undefined) return account.run(...args)
    const [home] = REGIONS
    const scripts = REGIONS.map((name) => ({
      name,
      reservations: name === home && environment['FOUND'] === 'yes' ? [fakeReservation(name)] : [],
      error:
        name === 'eu-west-1'
          ? {
              code: lost,
              message: 'They said <b>no</b>',
              httpStatus: lost === 'InternalError' ? 500 : 403,
            }
          : undefined,
    }))
    return runOn(scripts, args)
  })
})
afterAll(async () => {
  await bridge.close()
  await account.close()
  rmSync(folder, { recursive: true, force: true })
})

async function run(code: string, after = 'None'): Promise<Ran> {
  const before = 'from truffle import *\nimport truffle, os\ntf = Truffle()\n'
  const [ran] = await bridge.snippets([{ name: 'snippet', before, code, after }])
  return ran!
}

describe('a wrong argument', () => {
  const WRONG: readonly [string, RegExp][] = [
    ['tf.search([])', /^pattern= is empty\. Pass '\*' for all\.$/],
    ['tf.search("--json")', /^pattern='--json' is not names that do not begin with/],
    ['tf.search("g6", regions=[])', /^regions= is empty\. To ask about all, leave it out/],
    ['tf.search("g6", regions=[1])', /^regions=\[1\] is not a name or a list of names/],
    ['tf.search("g6", min_vcpus=0)', /^min_vcpus=0 is not a whole number above 0/],
    ['tf.search("g6", min_vcpus=1.5)', /^min_vcpus=1\.5 is not a whole number/],
    ['tf.search("g6", gpu_only="no")', /^gpu_only='no' is not True or False/],
    ['tf.spot("g6", max_price=-1)', /^max_price=-1 is not a number above 0/],
    ['tf.spot("g6", max_price=float("nan"))', /^max_price=nan is not a number above 0/],
    ['tf.capacity(reservation_type="spot")', /^reservation_type='spot' is not a ReservationType\. Pass Res/],
    [
      'tf.capacity(days=7)',
      /^days= needs offerings=True; without it, capacity\(\) lists what the account owns/,
    ],
    ['tf.capacity(offerings=True, min_capacity=2)', /^min_capacity= is for own reservations/],
    [
      'tf.capacity(offerings=True, reservation_type=ReservationType.ODCR)',
      /^offerings=True finds Capacity Blocks and cannot be combined with ReservationType\.ODCR/,
    ],
    ['tf.capacity(offerings=True, start_after=3)', /^start_after=3 is not a date/],
    ['tf.advise("fun")', /^purpose='fun' is not one of 'training'/],
    ['tf.advise("training", scheduled="yes")', /^scheduled='yes' is not True or False/],
    ['Truffle(timeout=0)', /^timeout=0 is not a number above 0/],
  ]

  it('is refused at once, in the words of the caller, without a call', async () => {
    const before = bridge.calls.length
    const snippets = WRONG.map(([code]) => ({
      name: code,
      code,
      before: 'from truffle import *\ntf = Truffle()',
    }))
    const ran = await bridge.snippets(snippets)
    WRONG.forEach(([code, message], index) => {
      const { error } = ran[index]!
      expect([code, error?.type]).toEqual([code, 'UsageError'])
      expect(error!.message).toMatch(message)
    })
    expect(bridge.calls.length).toBe(before)
  })

  it('that only the command line refuses is named as in Python too', async () => {
    const { error } = await run('tf.capacity(offerings=True, start_after="2027-02-30")')
    expect(error).toMatchObject({ type: 'UsageError' })
    expect(error!.message).toMatch(/'start_after=' argument '2027-02-30' is invalid/)
    expect(error!.message).toContain('`truffle capacity --help`')
  })

  it('is a ValueError', async () => {
    expect(await run('', 'issubclass(UsageError, ValueError)')).toMatchObject({ result: true })
  })
})

describe('Regions that do not answer', () => {
  it.each([
    ['UnauthorizedOperation', 'PermissionError'],
    ['InternalError', 'UnavailableError'],
  ])('make no "nothing": %s raises %s', async (code, type) => {
    const { error } = await run(`os.environ["LOST"] = ${JSON.stringify(code)}\ntf.capacity()`)
    expect(error?.type).toBe(type)
    expect(error!.message).toContain('Nothing was found, and these Regions did not answer: eu-west-1')
  })

  it('make no "no" of a validation, and keep the ways that others have', async () => {
    const lost = 'os.environ.update(LOST="InternalError", FOUND="yes")\n'
    const some = await run(
      `${lost}answer = tf.validate("g5.xlarge", count=4)`,
      '[str(answer.answer), len(answer.unanswered)]',
    )
    expect(some).toMatchObject({ error: null, result: ['conditions', 1] })
    const no = await run(`${lost}tf.validate("g5.xlarge", count=900)`)
    expect(no.error).toMatchObject({
      type: 'UnavailableError',
      message: expect.stringContaining('eu-west-1'),
    })
  })

  it('are named by a list that has something, also in a notebook', async () => {
    const { error, result } = await run(
      'os.environ.update(LOST="UnauthorizedOperation", FOUND="yes")\nfound = tf.capacity()',
      '[len(found), found.is_complete, [one.region for one in found.unanswered], found.summary.total, found._repr_html_()]',
    )
    expect(error).toBeNull()
    const [length, isComplete, lost, total, html] = result as [number, boolean, string[], number, string]
    expect([length, isComplete, lost, total]).toEqual([1, false, ['eu-west-1'], 1])
    expect(html).toContain('No answer from eu-west-1')
    expect(html).toContain('They said &lt;b&gt;no&lt;/b&gt;')
    expect(html).not.toContain('<b>no')
  })
})

describe('a validation', () => {
  it('with conditions is no yes, raises nothing, and raises what is required', async () => {
    const { stdout, error, result } = await run(
      `
answer = tf.validate("p5.48xlarge", count=8, days=2)
try: answer.require()
except ConditionalError as raised: print(raised)
`,
      '[bool(answer), str(answer.answer), answer.require(conditions=True).kind, answer.conditions, answer._repr_html_()]',
    )
    expect(error).toBeNull()
    const conditions = expect.arrayContaining([expect.stringMatching(/cannot be used before/)])
    expect(result).toEqual([
      false,
      'conditions',
      'capacity-block',
      conditions,
      expect.stringMatching(/conditions: 8 x p5/),
    ])
    expect(stdout).toMatch(/^Capacity for 8 x p5\.48xlarge for 2 days has conditions: .* Next: `/)
  })

  it('of no is an answer, and raises what is required', async () => {
    const { error, result } = await run(
      'answer = tf.validate("p5.48xlarge", count=60, days=2)\nnext = answer.next_command',
      '[bool(answer), str(answer.answer), answer.best, next, answer.missing != ()]',
    )
    expect({ error, result }).toEqual({
      error: null,
      result: [false, 'no', null, expect.stringMatching(/^truffle capacity --blocks --offerings/), true],
    })
    const raised = await run('tf.validate("p5.48xlarge", count=60, days=2).require()')
    expect(raised.error).toMatchObject({ type: 'CapacityError' })
  })
})

describe('the executable', () => {
  const ask = (path: string): Promise<Ran> => run(`Truffle(executable=${JSON.stringify(path)}).version()`)

  it.each([
    ['that is missing', () => '/nonexistent/truffle', 'ExecutableNotFound', /cannot be started.*executable=/],
    [
      'of another version',
      () => executable('newer', `echo '{"schema":"truffle/9","results":[]}'`),
      'SchemaMismatch',
      /documents of truffle\/9, and this package reads truffle\/1\. Install the same version of both/,
    ],
    [
      'that prints no JSON',
      () => executable('text', 'echo hello'),
      'SchemaMismatch',
      /printed no JSON: hello/,
    ],
    [
      'that prints nothing',
      () => executable('silent', 'echo it broke >&2; exit 1'),
      'CommandFailed',
      /ended with exit code 1 and without an answer: it broke/,
    ],
    [
      'that npm does not have',
      () => executable('unpublished', 'echo "npm error code E404" >&2; exit 1'),
      'ExecutableNotFound',
      /`truffle` is not on PATH, and npx could not get it: npm error code E404.*CRUCIBLE_CLI/,
    ],
    [
      'without a field',
      () => executable('older', `echo '{"schema":"truffle/1","results":[{}],"unanswered":[],"notes":[]}'`),
      'SchemaMismatch',
      /Install the same version of both/,
    ],
  ])('%s is one clear error', async (_what, path, type, message) => {
    const { error } = await ask(path())
    expect(error?.type).toBe(type)
    expect(error!.message).toMatch(message)
  })

  it('is the one next to CRUCIBLE_CLI, the one on PATH, or that of npx, in this order', async () => {
    for (const name of ['crucible', 'truffle', 'npx']) executable(name, 'exit 0')
    const built = join(__dirname, '../../dist/cli')
    const places: readonly [string, string, unknown][] = [
      [join(folder, 'crucible'), '/nonexistent', [join(folder, 'truffle')]],
      [`node ${built}/main.js`, folder, ['node', `${built}/truffle/main.js`]],
      ['', folder, [join(folder, 'truffle')]],
      [
        '',
        join(folder, 'only-npx'),
        [join(folder, 'only-npx/npx'), '--yes', '--package', 'crucible-ml', 'truffle'],
      ],
      [
        '',
        '/nonexistent',
        expect.stringMatching(/Neither `truffle` nor npx is on PATH\..*npm install --global crucible-ml/),
      ],
      ['/nonexistent/crucible', folder, expect.stringMatching(/no `truffle` next to it.*executable=/)],
    ]
    mkdirSync(join(folder, 'only-npx'))
    symlinkSync(join(folder, 'npx'), join(folder, 'only-npx/npx'))
    const code = `
from truffle.cli import Program
def command(named, path):
    try: return Program("truffle", env={"CRUCIBLE_CLI": named, "PATH": path}).command()
    except ExecutableNotFound as error: return str(error)
`
    const asked = JSON.stringify(places.map(([named, path]) => [named, path]))
    const { error, result } = await run(code, `[command(named, path) for named, path in ${asked}]`)
    expect({ error, result }).toEqual({ error: null, result: places.map(([, , command]) => command) })
  })

  it('ends when the task that waits for it is cancelled', async () => {
    const path = executable('slow', `echo $$ > ${join(folder, 'pid')}; exec sleep 60`)
    const { error, result } = await run(
      `
import asyncio, time
async def ask():
    task = asyncio.ensure_future(AsyncTruffle(executable=${JSON.stringify(path)}).version())
    while not os.path.exists(${JSON.stringify(join(folder, 'pid'))}): await asyncio.sleep(0.01)
    task.cancel()
    try: await task
    except asyncio.CancelledError: return int(open(${JSON.stringify(join(folder, 'pid'))}).read())
pid = asyncio.run(ask())
try: os.kill(pid, 0); alive = True
except ProcessLookupError: alive = False
`,
      'alive',
    )
    expect({ error, result }).toEqual({ error: null, result: false })
  })
})
