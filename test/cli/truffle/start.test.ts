/** The executable as a process of its own, and from Python: what it prints, and how soon. Without AWS's clients, its speed is not compared. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { awsClients } from '../../support/aws-clients'
import { itInAll } from '../../support/selection'
import { build } from '../process'
import { PYTHONPATH } from '../../bindings/bridge'
import { TruffleAccount } from './account'

jest.setTimeout(240_000)

const MAIN = join(__dirname, '..', '..', '..', 'dist', 'cli', 'truffle', 'main.js')
const ASKED = ['capacity', '--blocks', '--regions', 'us-east-1', '--json', '--fresh']
const run = promisify(execFile)
const { aws, python } = awsClients()
let account: TruffleAccount

beforeAll(async () => {
  build()
  account = await TruffleAccount.open({
    reservations: [
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 2, ends: '48h' },
    ],
  })
}, 180_000)
afterAll(() => account.close())

const environment = (): NodeJS.ProcessEnv => ({
  ...account.environment,
  PATH: process.env['PATH'],
  HOME: account.home,
  PYTHONPATH,
})

const OURS = `
from truffle import ReservationType, Truffle
tf = Truffle(executable=${JSON.stringify(`${process.execPath} ${MAIN}`)}, regions="us-east-1", fresh=True)
assert len(tf.capacity(reservation_type=ReservationType.CAPACITY_BLOCKS)) == 1
`
const THEIRS = `
import boto3
found = boto3.client("ec2", region_name="us-east-1").describe_capacity_reservations()
assert len(found["CapacityReservations"]) == 1
`

type Command = [program: string, args: readonly string[]]

/** The time that ours takes, in times of theirs: in turns, the quickest of five each, because the others had to wait for something else. */
async function comparedTime(ours: Command, theirs: Command): Promise<number> {
  const quickest = [Infinity, Infinity]
  for (let turn = 0; turn < 5; turn++) {
    for (const [index, [program, args]] of [ours, theirs].entries()) {
      const startedAtMs = performance.now()
      await run(program, args, { env: environment() })
      quickest[index] = Math.min(quickest[index]!, performance.now() - startedAtMs)
    }
  }
  return quickest[0]! / quickest[1]!
}

describe('truffle as a process', () => {
  it('answers on stdout, and keeps notes on stderr', async () => {
    const { stdout, stderr } = await run(process.execPath, [MAIN, ...ASKED], { env: environment() })
    expect(JSON.parse(stdout)).toMatchObject({
      schema: 'truffle/1',
      results: [{ instance_type: 'p5.48xlarge' }],
    })
    expect(stderr).toMatch(/^EC2 begins to end a block's machines/)
  })

  it('ends with the exit code of the answer', async () => {
    const empty = run(process.execPath, [MAIN, 'capacity', '-r', 'us-east-1'], { env: environment() })
    await expect(empty).rejects.toMatchObject({
      code: 3,
      stdout: 'No on-demand capacity reservation fits.\n',
    })
  })
  // In `npm test`, the comparison with boto3 keeps the promise.
  ;(aws === undefined ? it.skip : itInAll)(
    'takes less than twice the time of the AWS CLI for the same question',
    async () => {
      const theirs: Command = [aws!, ['ec2', 'describe-capacity-reservations', '--region', 'us-east-1']]
      expect(await comparedTime([process.execPath, [MAIN, ...ASKED]], theirs)).toBeLessThan(2)
    },
  )
  ;(python === undefined ? it.skip : it)(
    'answers a program of Python in less than twice the time that boto3 takes',
    async () => {
      expect(await comparedTime([python!, ['-c', OURS]], [python!, ['-c', THEIRS]])).toBeLessThan(2)
    },
  )
})
