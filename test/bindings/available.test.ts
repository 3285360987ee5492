/** "Available" is one number in the table, in the document and in Python, for every state of the capacity. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { Owned } from '../../backends/ec2/capacity'
import {
  ODCR_HEAD,
  odcrCells,
  odcrRow,
  BLOCK_HEAD,
  blockCells,
  blockRow,
} from '../../cli/truffle/reservation-rows'
import type { Answer } from '../cli/outside'
import { TruffleAccount } from '../cli/truffle/account'
import { Bridge } from './bridge'

jest.setTimeout(60_000)

const CAPACITY: readonly [state: string, free: number, available: number][] = [
  ['active', 4, 4],
  ['active', 1, 1],
  // All of its places are in use.
  ['active', 0, 0],
  ['scheduled', 4, 0],
  ['payment-pending', 4, 0],
  ['expired', 4, 0],
]

const P_CODE = 'L-417A185B'
const TRN_CODE = 'L-2C3B7624'

let account: TruffleAccount
let bridge: Bridge
/** The answer to the next question of Python, instead of the account's own. */
let given: Answer | undefined

beforeAll(async () => {
  account = await TruffleAccount.open({ quotas: { [P_CODE]: 384, [TRN_CODE]: 0 } })
  bridge = await Bridge.open(async ({ args }) => given ?? account.run(...args))
})
afterAll(async () => {
  await bridge.close()
  await account.close()
})

/** The values that Python reads. */
async function inPython(call: string, attribute: string): Promise<unknown> {
  const [ran] = await bridge.snippets([
    {
      name: call,
      before: 'from truffle import Truffle, ReservationType\ntf = Truffle()',
      code: `rows = ${call}`,
      after: `[one.${attribute} for one in rows]`,
    },
  ])
  expect(ran!.error).toBeNull()
  return ran!.result
}

/** The column of a table with this heading. */
function columnOf(table: string, heading: string): string[] {
  const [head, ...rows] = table
    .split('\n')
    .slice(table.split('\n').findIndex((line) => line.includes(heading)))
  const end = head!.indexOf(heading) + heading.length
  return rows
    .slice(0, rows.indexOf('') === -1 ? undefined : rows.indexOf(''))
    .flatMap((row) => /\S+$/.exec(row.slice(0, end))?.[0] ?? [])
}

describe('the available capacity of a reservation', () => {
  const owned = CAPACITY.map(
    ([state, free], index) =>
      ({
        region: 'us-east-1',
        reservation: {
          id: `cr-${index}`,
          isBlock: false,
          isInterruptible: false,
          type: 'p5.48xlarge',
          zone: 'us-east-1a',
          tenancy: 'default',
          platform: 'Linux/UNIX',
          total: 4,
          state,
          free,
        },
      }) as unknown as Owned,
  )

  it.each([
    ['on demand', ODCR_HEAD, odcrCells, odcrRow, 'tf.capacity()'],
    [
      'in a block',
      BLOCK_HEAD,
      blockCells,
      blockRow,
      'tf.capacity(reservation_type=ReservationType.CAPACITY_BLOCKS)',
    ],
  ] as const)('%s is the number that a launch can get now, everywhere', async (_, head, cells, row, call) => {
    const expected = CAPACITY.map(([, , available]) => available)
    const column = (head as readonly string[]).indexOf('Available')
    const results = owned.map(row)
    const document = { schema: 'truffle/1', command: 'capacity', results, unanswered: [], notes: [] }
    given = { exitCode: 0, stdout: JSON.stringify(document), stderr: '' }
    const python = await inPython(call, 'available_capacity')
    given = undefined
    expect({
      table: owned.map((one) => Number(cells(one)[column])),
      json: results.map((one) => one['available_capacity']),
      python,
    }).toEqual({ table: expected, json: expected, python: expected })
  })
})

describe('the available vCPUs of a quota', () => {
  const ofPlain = (rows: readonly Record<string, unknown>[]): unknown[] =>
    rows.map((row) => row['available_vcpus'] ?? '-')

  it.each([
    ['are zero for a quota of zero, not unknown', 'trn1', '0', undefined],
    ['are the rest of a quota', 'p5', '384', undefined],
    ['are unknown while the use of a quota cannot be read, not zero', 'p5', '-', 'DescribeInstances'],
  ])('%s', async (_, family, expected, denied) => {
    const undo =
      denied === undefined
        ? () => {}
        : account.cloud.addFault({
            fault: 'error',
            code: 'UnauthorizedOperation',
            status: 403,
            where: { action: denied },
          })
    const args = ['quotas', family, '--regions', 'us-east-1', '--fresh']
    const { stdout } = await account.run(...args)
    const { results } = await account.json(...args.slice(0, -1))
    const python = (await inPython(
      `Truffle(regions=["us-east-1"], fresh=True).quotas(${JSON.stringify(family)})`,
      'available_vcpus',
    )) as (number | null)[]
    undo()
    const table = columnOf(stdout, 'Available')
    expect({ json: ofPlain(results).map(String), python: python.map((one) => `${one ?? '-'}`) }).toEqual({
      json: table,
      python: table,
    })
    expect(table[0]).toBe(expected)
  })
})

describe('a run on demand', () => {
  it('has an unknown capacity in table, document and Python, whatever the quota allows', async () => {
    const { stdout } = await account.run('validate', 'p5.48xlarge', '--regions', 'us-east-1')
    const { results } = await account.json('validate', 'p5.48xlarge', '--regions', 'us-east-1')
    expect(results.map((one) => [one['kind'], one['available_capacity']])).toContainEqual(['on-demand', null])
    expect(stdout).toContain('room unknown until launch')
    const python = await inPython(
      'Truffle(regions=["us-east-1"]).validate("p5.48xlarge", 1, 1).options',
      'available_capacity',
    )
    expect(python).toContain(null)
  })
})
