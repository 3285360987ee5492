/**
 * Every snippet of Python in the documents that describe Crucible and `truffle` to people, one by one, on a small account. Where AWS is
 * otherwise than a document says, the answer has to say so. The command lines of the documents are in test/cli/truffle/documents.test.ts.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { TruffleAccount } from '../cli/truffle/account'
import { Bridge, type Ran, type Snippet } from './bridge'
import { GUIDE, TYPES } from './document-snippets'

jest.setTimeout(120_000)

/** The documents define `tf` once, in their first snippet. */
const TF = 'from truffle import Truffle, ReservationType\ntf = Truffle()\n'
/** Names that the documents only mention. */
const INVENTED = `
def start_training(): print("training starts")
def create_capacity_block(): print("a block is wanted")
`
const NOTES = '[note for one in (blocks, capacity) for note in one.notes]'

interface Case extends Snippet {
  /** Lines of what it prints. */
  prints?: readonly RegExp[]
  result?: (value: never) => void
}

const saysThat = (...corrections: RegExp[]): ((notes: never) => void) => {
  return (notes: string[]) => {
    for (const one of corrections) expect(notes.join('\n')).toMatch(one)
  }
}
const ODCRS_ARE_BILLED = /billed at the on-demand price, used or not/
const BLOCKS_END_EARLY =
  /EC2 begins to end a block's machines 30 minutes before its end; a scheduled block cannot be used before/

const CASES: readonly Case[] = [
  {
    name: 'the guide: check Capacity Blocks',
    code: GUIDE.checkBlocks,
    prints: [
      /^Capacity Block: cb-\w+$/m,
      /^ {2}Instances: 32x p5\.48xlarge$/m,
      /^ {2}Duration: 168 hours \(7 days\)$/m,
      /^ {2}Period: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z to \d{4}/m,
      /^ {2}UltraCluster: True$/m,
    ],
    after: 'blocks.notes',
    // "Available" there is a block that is only paid for.
    result: saysThat(BLOCKS_END_EARLY),
  },
  {
    name: 'the guide: check ODCRs',
    before: TF,
    code: GUIDE.checkOdcrs,
    prints: [
      /^ODCR: cr-/m,
      /^ {2}Instance: inf2\.xlarge$/m,
      /^ {2}Available: 60\/60$/m,
      /Location: us-west-2a/,
    ],
    after: 'capacity.notes',
    // "No reservation fee, only pay when instances are running".
    result: saysThat(ODCRS_ARE_BILLED),
  },
  {
    name: 'the guide: validation before a training',
    before: TF,
    code: GUIDE.validateTraining,
    prints: [/Capacity Block available:/, /32 instances for 7 days/, /^Ready to train!$/m],
    // It also says yes to a block that begins later; `validate` names that as a condition.
    after:
      '[str(one.answer) for one in map(lambda days: tf.validate("p5.48xlarge", 32, days), (7, 10))] + ' +
      '[" ".join(tf.validate("p5.48xlarge", 32, 10).conditions)]',
    result: (answers: string[]) =>
      expect(answers).toEqual(['yes', 'conditions', expect.stringMatching(/cannot be used before \d{4}-/)]),
  },
  {
    name: 'the page of types: basic usage',
    code: TYPES.basicUsage,
    after:
      '[[one.instance_type for one in results], [one.spot_price for one in spots], len(blocks), len(capacity)]',
    result: ([types, prices, blocks, capacity]: [string[], number[], number, number]) => {
      expect(types).toEqual(['m7i.large'])
      expect(prices.length).toBeGreaterThan(2)
      expect([...prices].sort((a, b) => a - b)).toEqual(prices)
      expect(Math.max(...prices)).toBeLessThanOrEqual(0.1)
      expect([blocks, capacity]).toEqual([3, 3])
    },
  },
  {
    // A list of signatures: each takes these arguments, also by position.
    name: 'the page of types: the whole interface',
    code: 'import inspect\nfrom truffle import Truffle',
    after:
      '{name: list(inspect.signature(getattr(Truffle, name)).parameters)[1:] for name in ("search", "az", "spot", "capacity")}',
    result: (parameters: Record<string, string[]>) => {
      for (const [, name, listed] of TYPES.fullApi.matchAll(/def (\w+)\(([^)]*)\)/g)) {
        const documented = listed!
          .replace(/#.*/g, '')
          .split(',')
          .map((one) => one.trim())
        expect([name, parameters[name!]!.slice(0, documented.length)]).toEqual([
          name,
          expect.arrayContaining(documented),
        ])
      }
    },
  },
  {
    name: 'the page of types: a large training',
    before: TF,
    code: TYPES.trainLlm,
    prints: [
      /^✅ Capacity Block: cb-/m,
      // "32x H100 GPUs": instances, with eight GPUs each.
      /^ {3}32x H100 GPUs$/m,
      /^ {3}UltraCluster: True$/m,
      /^ {3}Period: .*Z to .*Z$/m,
    ],
    after: 'blocks.notes',
    result: saysThat(BLOCKS_END_EARLY),
  },
  {
    name: 'the page of types: an inference service',
    before: TF,
    code: TYPES.inferenceApi,
    after: '[len(capacity), capacity.notes]',
    // No single reservation has room for 100, and an empty list is false; two have it together, which the answer says.
    result: ([count, notes]: [number, string[]]) => {
      expect(count).toBe(0)
      expect(notes.join('\n')).toMatch(/No single reservation has room for 100.*120 together/)
    },
  },
  {
    name: 'the page of types: can_train',
    before: TF + INVENTED,
    code: TYPES.canTrain,
    prints: [/Capacity Block found!/, /32 instances/, /^training starts$/m],
  },
  {
    name: 'the page of types: can_train without capacity',
    before: TF + INVENTED,
    code: TYPES.canTrain.replace('can_train("p5.48xlarge", 32, 7)', 'can_train("p4d.24xlarge", 32, 7)'),
    prints: [/No capacity!/, /Create Capacity Block for p4d\.24xlarge/, /^a block is wanted$/m],
  },
  {
    name: 'the page of types: command reference',
    before: TF,
    code: TYPES.commandReference,
    after: NOTES,
    result: saysThat(BLOCKS_END_EARLY, ODCRS_ARE_BILLED),
  },
  {
    name: 'the page of types: get started',
    code: TYPES.getStarted,
    after: NOTES,
    result: saysThat(BLOCKS_END_EARLY, ODCRS_ARE_BILLED),
  },
]

let account: TruffleAccount
let bridge: Bridge
let ran: Ran[]

beforeAll(async () => {
  account = await TruffleAccount.open({
    types: { 'm8g.medium': { vcpus: 1, memoryGiB: 4, usdPerHour: 0.045, architecture: 'arm64' } },
    reservations: [
      { kind: 'on-demand', type: 'inf2.xlarge', zone: 'us-east-1a', count: 60 },
      { kind: 'on-demand', type: 'inf2.xlarge', zone: 'us-east-1a', count: 60 },
      { kind: 'on-demand', type: 'g6.xlarge', zone: 'us-west-2a', count: 64 },
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-east-1a', count: 32, ends: '168h' },
      {
        kind: 'capacity-block',
        type: 'p5.48xlarge',
        zone: 'us-east-1b',
        count: 32,
        starts: '24h',
        ends: '264h',
      },
      { kind: 'capacity-block', type: 'p5.48xlarge', zone: 'us-west-2b', count: 16, ends: '336h' },
    ],
  })
  bridge = await Bridge.open(({ args }) => account.run(...args))
  ran = await bridge.snippets(CASES)
})
afterAll(async () => {
  await bridge.close()
  await account.close()
})

describe('the snippets of the documents', () => {
  it.each(CASES.map((one, index) => [one.name, one, index] as const))('%s', (_name, one, index) => {
    const { stdout, error, result } = ran[index]!
    expect(error).toBeNull()
    for (const line of one.prints ?? []) expect(stdout).toMatch(line)
    one.result?.(result as never)
  })
})

/**
 * The sketches of "ML Workload Support: Hybrid Approach": classes inside of a platform, which users never call. What plays the part of each
 * here is not a class of Python, because jobs outlive the process that submits them. Its example for users, `MLPlatform`, is run by the
 * tests of the package `crucible`.
 */
const SKETCHES: readonly { sketch: string; part: string; why: string }[] = [
  {
    sketch: 'ExecutionBackend, WorkloadCharacteristics, GPUExecutor',
    part: 'backends/backend.ts',
    why: 'what a provider has to offer; a job names what it needs, not an executor',
  },
  {
    sketch: 'WorkloadRouter.recommend_backend',
    part: 'planner/plan/rank.ts',
    why: 'a user reads its answer: `crucible plan`, `recommend` in Python',
  },
  {
    sketch: 'EC2GPUPool.provision_instance, request_spot_instance',
    part: 'backends/ec2/launch/launch.ts',
    why: 'RequestSpotInstances takes no launch template and is legacy; machines are launched by CreateFleet or RunInstances',
  },
  {
    sketch: 'EC2JobExecutor.execute_on_instance',
    part: 'runner/crucible_runner/process/workload.py',
    why: 'a command of SSM ends after an hour unless told otherwise; a runner on the machine does the work',
  },
  { sketch: 'ModalExecutor', part: 'backends/modal/launch.ts', why: 'one of the backends' },
  {
    sketch: 'PaperspaceExecutor',
    part: 'backends/lambda/index.ts',
    why: 'its jobs service is gone; Lambda Cloud is the GPU provider outside of AWS',
  },
  {
    sketch: 'UnifiedJobMonitor.get_unified_status',
    part: 'client/job/view.ts',
    why: 'one view of a job wherever it runs: `crucible show`, `job.monitor()` in Python',
  },
  {
    sketch: 'HybridStorage.setup_job_storage',
    part: 'storage/layout.ts',
    why: 'one layout in one object store for all backends, so that a checkpoint can be read everywhere',
  },
  {
    sketch: 'BackendRecommendation, MLJobSubmission (TypeScript)',
    part: 'cli/commands/job/plan.ts',
    why: 'a page for a browser; the same facts are printed, and shown in notebooks',
  },
  {
    sketch: 'CostComparisonDashboard (TypeScript)',
    part: 'planner/plan/explain.ts',
    why: 'a page for a browser; `crucible plan` compares the costs of every offer',
  },
  {
    sketch: 'HybridExecutionStrategy.execute_with_fallback, execute_distributed',
    part: 'workflows/job/job.ts',
    why: 'a job continues elsewhere from its checkpoint whether or not the program that submitted it still runs',
  },
  {
    sketch: 'AutoScalingManager.handle_demand_spike, optimize_long_running_jobs',
    part: 'planner/policy/decide.ts',
    why: 'each job is placed where it is best at its time; there is no queue in front of a pool to scale',
  },
]

describe('the sketches of the document about hybrid workloads', () => {
  it.each(SKETCHES)('$sketch: $part', ({ part, why }) => {
    expect(existsSync(join(__dirname, '../..', part))).toBe(true)
    expect(why).not.toBe('')
  })
})
