import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { AgentAnswer } from '../../../packages/small-cloud/src/machines/machine'
import type { Drain } from '../../../core/documents'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { patiently } from '../harness'
import { Ec2Harness, type PaperHarness } from './harness'

let h: PaperHarness
let order: Order
let handle: MachineHandle
let answer: Partial<AgentAnswer> = {}

beforeEach(async () => {
  answer = {}
  h = await Ec2Harness.onPaper()
  order = await h.order()
  await launch()
})
afterEach(() => h.dispose())

async function launch(): Promise<void> {
  handle = await h.launched(order)
  await h.clock.advance(1_000)
  h.machines.get(handle.id)!.answer = async () => ({
    exitCode: 0,
    stdout: '',
    stderr: '',
    timedOut: false,
    ...answer,
  })
}

const sent = (): string[] =>
  h.calls('SendCommand').map(({ parameters }) => JSON.stringify(parameters).replaceAll('\\"', '"'))
const specOf = (command: string): unknown => {
  const [, text] = /b64decode\("([^"]+)"\)/.exec(command)!
  return JSON.parse(Buffer.from(text!, 'base64').toString())
}

describe('what can be learned of a machine of EC2', () => {
  const logs = () => h.meanwhile(h.backend.logs!(handle, undefined, patiently()))

  it('is what the agent is, what the machine says, and the console', async () => {
    answer = { stdout: JSON.stringify({ text: 'the units and the log', last: 'the store does not answer' }) }
    const { text, lastWords } = await logs()
    expect(text).toBe(
      `# The agent (SSM)\nis online\n\n# The machine\nthe units and the log\n\n# The console\nconsole of ${handle.id}`,
    )
    expect(lastWords).toBe('the store does not answer')
    expect(sent().map(specOf)).toEqual([{ attemptId: order.attemptId }])
  })

  it('is the console alone where no agent hears, and its last line counts', async () => {
    h.cloud.addFault({ fault: 'no-agent' })
    order = await h.order()
    await launch()
    expect(await logs()).toEqual({
      text: `# The agent (SSM)\nis not registered: it never was, or the machine has ended\n\n# The console\nconsole of ${handle.id}`,
      lastWords: `console of ${handle.id}`,
    })
    expect(sent()).toEqual([])
  })

  it('is everything available when an answer was cut short, or missing', async () => {
    answer = { stdout: '{"text": "half of' }
    expect((await logs()).text).toContain('# The machine\n{"text": "half of')
    h.fail('GetConsoleOutput', 'UnauthorizedOperation', { status: 403, message: 'not you' })
    expect((await logs()).text).toContain('# The console\ncannot be read: not you')
    h.fail('DescribeInstanceInformation', 'InternalServerError', { status: 500, times: 3 })
    expect((await logs()).text).toContain('the provider does not report it')
  })

  it('has no keys and no signatures in it', async () => {
    const said =
      'GET https://b.s3.amazonaws.com/r?X-Amz-Credential=AKIA0123456789ABCDEF%2F1&X-Amz-Signature=00ff AKIA0123456789ABCDEF aws_secret_access_key = hush'
    answer = { stdout: JSON.stringify({ text: said, last: said }) }
    const told = JSON.stringify(await logs())
    for (const secret of ['AKIA0123456789ABCDEF', '00ff', 'hush']) expect(told).not.toContain(secret)
    expect(told).toContain('X-Amz-Signature=***')
  })
})

describe('an order to drain through the agent', () => {
  const drain: Drain = { reason: 'cancelled', windowMs: 60_000, requestedAtMs: 1 }

  it('is one short command, however often it is given within a moment', async () => {
    await h.meanwhile(h.backend.drain!(handle, drain, patiently()))
    await h.meanwhile(h.backend.drain!(handle, drain, patiently()))
    expect(sent().map(specOf)).toEqual([{ attemptId: order.attemptId, drain }])
  })

  it('that the machine does not take is tried again', async () => {
    answer = { exitCode: 1, stderr: 'no systemd here\n' }
    await expect(h.meanwhile(h.backend.drain!(handle, drain, patiently()))).rejects.toMatchObject({
      failure: { class: 'transient', message: expect.stringContaining('no systemd here') },
    })
  })
})
