import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { CommandRequest, InvocationResult } from '../../../backends/ec2/sdk/api-commands'
import type { Drain } from '../../../core/documents'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { patiently } from '../harness'
import { Ec2Harness } from './harness'

let h: Ec2Harness
let order: Order
let handle: MachineHandle
let answer: Partial<InvocationResult> = {}

beforeEach(async () => {
  answer = {}
  h = new Ec2Harness()
  h.aws.onCommand = () => answer
  order = await h.order()
  const outcome = await h.backend.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(outcome.kind)
  handle = outcome.handle
})
afterEach(() => h.dispose())

const sent = (): CommandRequest[] =>
  h.aws.calls.filter(({ name }) => name === 'send').map(({ detail }) => detail as CommandRequest)
const specOf = ({ lines }: CommandRequest): unknown => {
  const [, text] = /b64decode\("([^"]+)"\)/.exec(lines.join('\n'))!
  return JSON.parse(Buffer.from(text!, 'base64').toString())
}

describe('what can be learned of a machine of EC2', () => {
  const logs = () => h.backend.logs!(handle, undefined, patiently())

  it('is what the agent is, what the machine says, and the console', async () => {
    answer = { stdout: JSON.stringify({ text: 'the units and the log', last: 'the store does not answer' }) }
    const { text, lastWords } = await logs()
    expect(text).toBe(
      '# The agent (SSM)\nis online\n\n# The machine\nthe units and the log\n\n# The console\nbooted',
    )
    expect(lastWords).toBe('the store does not answer')
    expect(sent().map(specOf)).toEqual([{ attemptId: order.attemptId }])
  })

  it('is the console alone where no agent hears, and its last line counts', async () => {
    h.aws.registersAfterMs = null
    expect(await logs()).toEqual({
      text: '# The agent (SSM)\nis not registered: it never was, or the machine has ended\n\n# The console\nbooted',
      lastWords: 'booted',
    })
    expect(sent()).toEqual([])
  })

  it('is everything available when an answer was cut short, or missing', async () => {
    answer = { stdout: '{"text": "half of' }
    expect((await logs()).text).toContain('# The machine\n{"text": "half of')
    h.aws.fail('console', 'UnauthorizedOperation', { httpStatus: 403, message: 'not you' })
    expect((await logs()).text).toContain('# The console\ncannot be read: not you')
    h.aws.fail('agent', 'InternalServerError', { httpStatus: 500 })
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
    await h.backend.drain!(handle, drain, patiently())
    await h.backend.drain!(handle, drain, patiently())
    expect(sent().map(specOf)).toEqual([{ attemptId: order.attemptId, drain }])
  })

  it('that the machine does not take is tried again', async () => {
    answer = { status: 'Failed', exitCode: 1, stderr: 'no systemd here\n' }
    await expect(h.backend.drain!(handle, drain, patiently())).rejects.toMatchObject({
      failure: { class: 'transient', message: expect.stringContaining('no systemd here') },
    })
  })
})
