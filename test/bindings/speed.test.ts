/** How soon a program of Python has an answer, compared with AWS's own client for the same question. Skipped without boto3. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { awsClients } from '../support/aws-clients'
import { build } from '../cli/process'
import { TruffleAccount } from '../cli/truffle/account'
import { PYTHONPATH } from './bridge'

jest.setTimeout(240_000)

const MAIN = join(__dirname, '../../dist/cli/truffle/main.js')
const run = promisify(execFile)
const { python } = awsClients()
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

/** Milliseconds of the quickest of three programs, from their start to their end: the others had to wait for something else. */
async function quickest(program: string): Promise<number> {
  const times: number[] = []
  const env = { ...account.environment, PATH: process.env['PATH'], HOME: account.home, PYTHONPATH }
  for (let turn = 0; turn < 3; turn++) {
    const startedAtMs = performance.now()
    await run(python!, ['-c', program], { env })
    times.push(performance.now() - startedAtMs)
  }
  return Math.min(...times)
}

describe('a program of Python', () => {
  ;(python === undefined ? it.skip : it)(
    'has its answer in less than twice the time that it takes with boto3',
    async () => {
      expect((await quickest(OURS)) / (await quickest(THEIRS))).toBeLessThan(2)
    },
  )
})
