/** The Python package `truffle` and the command line have the same questions, fields and errors. */
import { execFileSync } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { EXIT_CODES } from '../../client/errors'
import { readCliConfig } from '../../cli/kit/config'
import { makeTruffle, TRUFFLE_COMMANDS } from '../../cli/truffle/program'
import { Session } from '../../cli/truffle/session'
import { Paper } from '../cli/outside'
import { TruffleAccount } from '../cli/truffle/account'
import { REGIONS, runOn, scriptOf } from '../cli/truffle/drawn'
import { chosen } from '../support/selection'
import { Bridge, type Ran } from './bridge'

jest.setTimeout(120_000)

const ROOT = join(__dirname, '../..')

/** Questions to the command line, the same in Python, and fields of a document that are no rows. */
const QUESTIONS: readonly { line: string; call: string; more?: string[] }[] = [
  { line: 'search g6 --show-price', call: 'tf.search("g6", show_price=True)' },
  { line: 'az g6.xlarge', call: 'tf.az("g6.xlarge")' },
  { line: 'az g6.xlarge --regions-only', call: 'tf.az("g6.xlarge", regions_only=True)' },
  {
    line: 'spot g6.xlarge --show-savings --scores 4',
    call: 'tf.spot("g6.xlarge", show_savings=True, scores=4)',
  },
  { line: 'capacity', call: 'tf.capacity()', more: ['reservation_types', 'summary'] },
  {
    line: 'capacity --blocks',
    call: 'tf.capacity(reservation_type=ReservationType.CAPACITY_BLOCKS)',
    more: ['reservation_types', 'summary'],
  },
  {
    line: 'capacity --blocks --offerings --instance-types p5.48xlarge',
    call: 'tf.capacity("p5.48xlarge", offerings=True)',
    more: ['offerings', 'count', 'days', 'not_covered'],
  },
  { line: 'capacity --topology', call: 'tf.capacity(topology=True)', more: ['topology'] },
  {
    line: 'quotas p5 --request 900',
    call: 'tf.quotas("p5", request=900)',
    more: ['request_commands'],
  },
  { line: 'list', call: 'tf.list()', more: ['relative_to'] },
  { line: 'list --accelerators', call: 'tf.list(accelerators=True)', more: ['relative_to'] },
  {
    line: 'validate p5.48xlarge --count 4 --days 1',
    call: 'tf.validate("p5.48xlarge", 4, 1).options',
    more: ['verdict', 'wanted', 'quotas', 'missing', 'next_command'],
  },
  {
    line: 'advise --purpose inference --machines 4 --scaling yes',
    call: '[tf.advise("inference", machines=4, scaling=True)]',
  },
]

/** Options of the command line that have another name in Python, or none because they are about printing. */
const RENAMED: Readonly<Record<string, readonly string[]>> = {
  az: ['azs'],
  odcr: ['reservation_type'],
  blocks: ['reservation_type'],
  interruptions: ['interruptions'],
  output: [],
  json: [],
  color: [],
  emoji: [],
}
/** Arguments of the constructor. */
const SHARED = ['profile', 'regions', 'timeout', 'fresh']

let account: TruffleAccount
let bridge: Bridge

beforeAll(async () => {
  account = await TruffleAccount.open({
    reservations: [
      { kind: 'on-demand', type: 'g6.xlarge', zone: 'us-west-2a', count: 64 },
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 32, ends: '168h' },
    ],
    blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1a', count: 64, usdPerInstanceHour: 31.5 }],
  })
  bridge = await Bridge.open(({ args }) => account.run(...args))
})
afterAll(async () => {
  await bridge.close()
  await account.close()
})

describe('the fields of the rows', () => {
  let ran: Ran[]
  beforeAll(async () => {
    const before = `import sys; sys.path.insert(0, ${JSON.stringify(join(__dirname, 'python'))})
from truffle import Truffle, ReservationType
from typed import of_row
import dataclasses
tf = Truffle()`
    ran = await bridge.snippets(
      QUESTIONS.map(({ call }) => ({
        name: call,
        before,
        code: `rows = ${call}`,
        after:
          '[[field.name for field in dataclasses.fields(rows[0])], [one for row in rows for one in of_row(row)]]',
      })),
    )
  })

  it.each(QUESTIONS.map((one, index) => [one.line, one, index] as const))(
    'are those of `truffle %s`, and have the types that are promised',
    async (line, { more = [] }, index) => {
      const document = await account.json(...line.split(' '))
      expect(ran[index]!.error).toBeNull()
      const [fields, problems] = ran[index]!.result as [string[], string[]]
      expect(fields.sort()).toEqual(Object.keys(document.results[0]!).sort())
      expect(problems).toEqual([])
      const common = ['schema', 'command', 'results', 'unanswered', 'notes']
      expect(Object.keys(document).filter((name) => !common.includes(name))).toEqual(more)
    },
  )
})

describe('the options of the command line', () => {
  it('are arguments in Python', async () => {
    const [ran, choices] = await bridge.snippets([
      {
        name: 'signatures',
        code: 'import inspect\nfrom truffle import AsyncTruffle, Truffle',
        after:
          '[{name: list(inspect.signature(getattr(one, name)).parameters) for name in dir(one) if name[0] != "_" or name == "__init__"}' +
          ' for one in (Truffle, AsyncTruffle)]',
      },
      {
        name: 'choices',
        code: 'import typing\nfrom truffle.options import Purpose, Sorting',
        after: '{"purpose": typing.get_args(Purpose), "sort": typing.get_args(Sorting)}',
      },
    ])
    const [python, asynchronous] = ran!.result as Record<string, string[]>[]
    expect(asynchronous).toEqual(python)
    expect(python!['__init__']).toEqual(expect.arrayContaining(SHARED))
    const stdout = new Paper()
    const session = new Session(
      {
        config: readCliConfig(account.environment, '/usr/local/bin/truffle'),
        stdout,
        stderr: stdout,
        signals: new EventEmitter(),
        exit: () => {},
        now: Date.now,
      },
      'table',
    )
    const commands = makeTruffle(session).commands
    // Scripts for shells have no use in Python.
    expect(
      commands
        .map((command) => command.name())
        .filter((name) => name !== 'completion')
        .sort(),
    ).toEqual(
      Object.keys(python!)
        .filter((name) => name !== '__init__')
        .sort(),
    )
    expect(commands).toHaveLength(TRUFFLE_COMMANDS.length)
    const limited = commands
      .flatMap(({ options }) => [...options])
      .filter((option) => option.argChoices?.[0] !== 'yes' && option.name() !== 'output')
      .filter((option) => option.argChoices !== undefined)
      .map((option) => [option.name(), option.argChoices])
    expect(Object.fromEntries(limited)).toEqual(choices!.result)
    for (const command of commands.filter((one) => one.name() !== 'completion')) {
      const names = command.options
        .filter(({ hidden }) => !hidden)
        .flatMap((option) => {
          const name = option.attributeName().replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
          return RENAMED[name] ?? [name]
        })
        .filter((name) => !SHARED.includes(name))
        // It is the first argument there.
        .filter((name) => !(command.name() === 'quotas' && name === 'instance_types'))
      expect([command.name(), python![command.name()]]).toEqual([
        command.name(),
        expect.arrayContaining(names),
      ])
    }
  })
})

describe('the kinds of errors', () => {
  it('are those of the command line, with their exit codes', async () => {
    const [ran] = await bridge.snippets([
      {
        name: 'kinds',
        code: 'from truffle import cli',
        after: '[{kind: code for code, kind in cli.EXIT_CODES.items()}, sorted(cli.ERRORS)]',
      },
    ])
    expect(ran!.result).toEqual([EXIT_CODES, Object.keys(EXIT_CODES).sort()])
  })
})

describe('the asynchronous form', () => {
  it('is generated from the other', () => {
    execFileSync(process.execPath, [join(ROOT, 'tools/gen-python-async.mjs'), '--check'], { stdio: 'pipe' })
  })

  it('asks several questions at once, with the same answers', async () => {
    const [ran] = await bridge.snippets([
      {
        name: 'async',
        code: `
import asyncio
from truffle import AsyncTruffle, ReservationType, Truffle
tf = AsyncTruffle(regions=["us-east-1", "us-west-2"])
found, blocks, answer = await asyncio.gather(
    tf.search("g6.xlarge"), tf.capacity(reservation_type=ReservationType.CAPACITY_BLOCKS), tf.validate("p5.48xlarge", 4)
)
same = Truffle(regions=["us-east-1", "us-west-2"])
`,
        after:
          '[found == same.search("g6.xlarge"), blocks == same.capacity(reservation_type=ReservationType.CAPACITY_BLOCKS), bool(answer), len(found)]',
      },
    ])
    expect(ran).toMatchObject({ error: null, result: [true, true, true, 2] })
  })
})

const CALLS: Readonly<Record<string, string>> = {
  'search g5 --show-price --min-vcpus 4': 'tf.search("g5", show_price=True, min_vcpus=4)',
  'search nonsense9': 'tf.search("nonsense9")',
  'az p5.48xlarge --min-az-count 2': 'tf.az("p5.48xlarge", min_az_count=2)',
  'spot g5 p5 --scores 4 --max-price 0.2 --no-interruptions': 'tf.spot(["g5", "p5"])',
  capacity: 'tf.capacity()',
  'capacity --blocks': 'tf.capacity(reservation_type="capacity-block")',
  'capacity --blocks --odcr --active-only': 'tf.capacity(reservation_type=["odcr", "capacity-block"])',
  'capacity --topology': 'tf.capacity(topology=True)',
  'capacity --blocks --offerings --count 4 --days 7': 'tf.capacity(offerings=True)',
  'quotas --request 900': 'tf.quotas(request=900)',
  'validate p5.48xlarge --count 4 --days 7': 'tf.validate("p5.48xlarge", 4, 7)',
  'validate q1.large': 'tf.validate("q1.large")',
  list: 'tf.list()',
  version: 'tf.version()',
  'advise --purpose training': 'tf.advise("training")',
}

describe('in drawn states', () => {
  it('every answer is read: rows of the promised types, or an error that fits the exit code', async () => {
    const seed = Date.now()
    const drawn = fc.sample(
      fc.tuple(fc.tuple(...REGIONS.slice(0, 5).map(scriptOf)), fc.constantFrom(...Object.keys(CALLS))),
      { numRuns: chosen([1_000], [150])[0]!, seed },
    )
    const lines: { call: string; code: number; stdout: string }[] = []
    for (const [scripts, command] of drawn) {
      const regions = scripts.map(({ name }) => name).join(',')
      const { exitCode, stdout } = await runOn(scripts, [
        ...command.split(' '),
        '--json',
        '--regions',
        regions,
      ])
      lines.push({ call: CALLS[command]!, code: exitCode, stdout })
    }
    const input = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    const path = join(__dirname, 'python/drawn.py')
    const printed = (await bridge.python([path], input)).trimEnd().split('\n')
    expect(printed).toHaveLength(lines.length)
    printed.forEach((text, index) => {
      const found = JSON.parse(text) as { rows?: number; problems?: string[]; error?: string }
      const { call, code } = lines[index]!
      if (found.error === undefined)
        expect({ call, code: [0, 3, 9].includes(code), problems: found.problems, seed }).toEqual({
          call,
          code: true,
          problems: [],
          seed,
        })
      else expect({ call, error: found.error, seed }).toEqual({ call, error: ERROR_OF[code], seed })
    })
  })
})

const ERROR_OF: Readonly<Record<number, string>> = {
  1: 'CommandFailed',
  2: 'UsageError',
  4: 'PermissionError',
  5: 'NotFoundError',
  7: 'UnavailableError',
}
