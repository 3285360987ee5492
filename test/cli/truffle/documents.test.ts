/**
 * Every command line of the documents that describe `truffle` to people, one by one, as it is written there. Where AWS is otherwise than a
 * document says, the answer has to say so. The third document has none; test/bindings/documents.test.ts runs the Python of all three. The
 * lines that install (`curl`, `chmod`, `pip install truffle-aws`) are test/tools/package.e2e.test.ts and test/bindings/packages.test.ts.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { TruffleAccount } from './account'

jest.setTimeout(60_000)

interface Line {
  /** As in the document. */
  line: string
  /** What the answer must contain. */
  finds?: RegExp
  /** What the document says and AWS does not, with the words of the answer that say so. */
  corrects?: RegExp
  exitCode?: number
}

const ODCRS_ARE_BILLED = /billed at the on-demand price, used or not/
const BLOCKS_END_EARLY =
  /EC2 begins to end a block's machines 30 minutes before its end; a scheduled block cannot be used before its start/
const OWNED_BLOCKS = /Capacity Block Summary:/
const OWNED_ODCRS = /Capacity Reservation Summary \(ODCRs\):/

/** "ML Capacity Reservations: Complete Guide" */
const GUIDE: readonly Line[] = [
  // 1-14 days and 8 weeks: offerings say otherwise. `scheduled` counts as "available" there.
  { line: 'truffle capacity --blocks', finds: OWNED_BLOCKS, corrects: BLOCKS_END_EARLY },
  {
    line: 'truffle capacity --blocks --instance-types p5.48xlarge',
    finds: /p5\.48xlarge/,
    corrects: BLOCKS_END_EARLY,
  },
  // "Pay only when instances are running".
  { line: 'truffle capacity', finds: OWNED_ODCRS, corrects: ODCRS_ARE_BILLED },
  {
    line: 'truffle capacity --odcr --gpu-only --available-only',
    finds: /inf2\.xlarge/,
    corrects: ODCRS_ARE_BILLED,
  },
  { line: 'truffle capacity --blocks --instance-types p5.48xlarge,p4d.24xlarge', finds: /Total Blocks: 2\n/ },
  { line: 'truffle capacity --blocks --active-only', finds: OWNED_BLOCKS },
  {
    line: 'truffle capacity --blocks --instance-types p5.48xlarge --regions us-east-1,us-west-2',
    finds: /Total Blocks: 2\n/,
  },
  {
    line: 'truffle capacity --odcr --instance-types inf2.xlarge,g6.xlarge',
    finds: /Total Reservations: 3\n/,
  },
  { line: 'truffle capacity --odcr --gpu-only --min-capacity 10', finds: /Total Reservations: 3\n/ },
  {
    line: 'truffle capacity --odcr --instance-types inf2.xlarge --min-capacity 20',
    finds: /Total Reservations: 2\n/,
  },
  { line: 'truffle capacity --odcr --instance-types g6.xlarge --available-only', finds: /g6\.xlarge/ },
  { line: 'truffle capacity --blocks --output json', finds: /"capacity_block_id": "cb-/ },
  { line: 'truffle capacity --odcr --output json', finds: /"reservation_id": "cr-/ },
  // "Don't do this": it lists what is owned, whatever it is good for.
  {
    line: 'truffle capacity --odcr --instance-types p5.48xlarge',
    exitCode: 3,
    finds: /No on-demand capacity reservation fits/,
  },
  {
    line: 'truffle capacity --blocks --instance-types inf2.xlarge',
    exitCode: 3,
    finds: /No Capacity Block of this account fits/,
    corrects: /AWS sells no Capacity Blocks of inf2\.xlarge; an on-demand reservation can hold them/,
  },
  {
    line: 'truffle capacity --blocks --gpu-only',
    finds: /Instance Types: 2 \(p5\.48xlarge, trn1\.32xlarge\)/,
  },
]

/** "ML Capacity Types + Python Bindings" */
const TYPES: readonly Line[] = [
  {
    line: 'truffle capacity --blocks --instance-types p5.48xlarge --regions us-east-1',
    finds: /Total Blocks: 1\n/,
  },
  {
    line: 'truffle capacity --odcr --instance-types inf2.xlarge --min-capacity 100',
    exitCode: 3,
    corrects: /No single reservation has room for 100.*120 together/,
  },
  {
    line: 'truffle capacity --blocks --instance-types p5.48xlarge,trn1.32xlarge',
    finds: /Total Blocks: 3\n/,
  },
  // Rows of its use-case matrix, which has only the options.
  { line: 'truffle capacity --blocks --instance-types trn1.32xlarge', finds: /trn1\.32xlarge/ },
  {
    line: 'truffle capacity --odcr --instance-types inf2.xlarge',
    finds: /inf2\.xlarge/,
    corrects: ODCRS_ARE_BILLED,
  },
  { line: 'truffle capacity --odcr', finds: OWNED_ODCRS, corrects: ODCRS_ARE_BILLED },
  { line: 'truffle capacity --odcr --gpu-only', finds: OWNED_ODCRS },
  { line: 'truffle capacity --odcr --available-only --min-capacity 100', exitCode: 3 },
  { line: 'truffle capacity --blocks', finds: OWNED_BLOCKS },
]

/** Calls of its Python classes, as the command lines that they mean. */
const PYTHON: readonly Line[] = [
  { line: 'truffle search m7i.large --regions us-east-1', finds: /m7i\.large +us-east-1/ },
  { line: 'truffle spot m7i.* --max-price 0.10 --sort-by-price', finds: /m7i\.large/ },
  {
    line: 'truffle az g6.xlarge --min-az-count 3 --az us-east-1a,us-east-1b,us-east-1c',
    finds: /us-east-1a, us-east-1b, us-east-1c/,
  },
  { line: 'truffle search g6.* --architecture x86_64 --min-vcpus 8 --min-memory 32', finds: /g6\.2xlarge/ },
  { line: 'truffle spot g6.xlarge --show-savings', finds: /Savings/ },
  // "can_train": `scheduled` does not count as available now, and a block of 14 days is not the longest.
  {
    line: 'truffle validate --instance-type p5.48xlarge --count 32 --days 7',
    finds: /own Capacity Block cr-/,
  },
  {
    line: 'truffle capacity --blocks --offerings --instance-types p5.48xlarge --count 32 --days 10',
    corrects: /AWS sells 1 to 14 days, and whole weeks up to 182 days/,
  },
  {
    line: 'truffle advise --purpose training --scheduled yes --days 10 --machines 32 --interruptible no',
    corrects: /it is not limited to 14 days/,
  },
  {
    line: 'truffle advise --purpose inference --machines 100 --scaling yes',
    corrects: /"pay only when running" is wrong/,
  },
  {
    line: 'truffle advise --purpose retraining --scheduled yes --days 7 --machines 64 --interruptible no',
    corrects: /8 weeks ahead at most/,
  },
]

let account: TruffleAccount

beforeAll(async () => {
  account = await TruffleAccount.open({
    reservations: [
      { kind: 'on-demand', type: 'inf2.xlarge', zone: 'us-east-1a', count: 60 },
      { kind: 'on-demand', type: 'inf2.xlarge', zone: 'us-east-1a', count: 60 },
      { kind: 'on-demand', type: 'g6.xlarge', zone: 'us-west-2a', count: 64 },
      { kind: 'on-demand', type: 'm7i.large', zone: 'eu-west-1a', count: 4 },
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 32, ends: '168h' },
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-west-2b', count: 16, ends: '336h' },
      { kind: 'capacity-block', type: 'trn1.32xlarge', zone: 'us-east-1c', count: 64, ends: '168h' },
    ],
    blockOfferings: [{ type: 'p5.48xlarge', zone: 'us-east-1a', count: 64, usdPerInstanceHour: 31.5 }],
  })
})
afterAll(() => account.close())

describe.each([
  ['the guide', GUIDE],
  ['the page of types', TYPES],
  ['the Python calls', PYTHON],
])('%s', (_document, lines) => {
  it.each(lines.map((one) => [one.line, one] as const))(
    '%s',
    async (line, { finds, corrects, exitCode = 0 }) => {
      const [, ...words] = line.split(' ')
      const answer = await account.run(...words)
      expect({ exitCode: answer.exitCode, error: answer.stderr.match(/^error:.*/m)?.[0] }).toEqual({
        exitCode,
      })
      if (finds !== undefined) expect(answer.stdout).toMatch(finds)
      if (corrects !== undefined) expect(answer.stdout + answer.stderr).toMatch(corrects)
    },
  )
})
