import { Writable } from 'node:stream'
import { describe, expect, it } from '@jest/globals'
import { pino } from 'pino'
import { temporalLogger } from '../../workers/logging'

function logged(
  level: string,
  meta: Record<string, unknown>,
  message = 'Workflow failed',
): { level: number; msg: string }[] {
  const lines: string[] = []
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(...chunk.toString().trimEnd().split('\n'))
      done()
    },
  })
  temporalLogger(pino({ level }, stream)).warn(message, meta)
  return lines.map((line) => JSON.parse(line) as { level: number; msg: string })
}

const failure = (message: string, type: string): Error => Object.assign(new Error(message), { type })
const JOB = { workflowType: 'job', workflowId: 'job/char-lm-xm8n27', runId: 'x' }

describe('the log of workers', () => {
  it('has one line for a failed job, with its reason and message', () => {
    const message = 'The program ended with exit code 1.\nTraceback ...'
    // The sandbox of workflows hands errors over without their type.
    expect(logged('warn', { ...JOB, error: new Error(message) })).toEqual([])
    const [line, ...others] = logged('warn', { ...JOB, reason: 'workload-failed', message }, 'Job failed')
    expect(others).toEqual([])
    expect(line!.msg).toBe(
      'Job char-lm-xm8n27 failed (workload-failed): The program ended with exit code 1. Traceback ...',
    )
    expect(Object.keys(line!).sort()).toEqual(['hostname', 'level', 'msg', 'pid', 'time'])
  })

  it('has an attempt that lost its machine only where everything is wanted', () => {
    const meta = {
      workflowType: 'attempt',
      workflowId: 'job/char-lm-xm8n27/2',
      error: failure('The machine was interrupted.', 'attempt-failed'),
    }
    expect(logged('warn', meta)).toEqual([])
    expect(logged('info', meta)).toMatchObject([
      { msg: 'Attempt char-lm-xm8n27/2 failed: The machine was interrupted.' },
    ])
  })

  it('has all that is known of any other workflow that fails', () => {
    const meta = { workflowType: 'garbageCollection', workflowId: 'gc', error: failure('a bug', 'TypeError') }
    expect(logged('warn', meta)).toMatchObject([{ msg: 'Workflow failed', workflowId: 'gc' }])
  })
})
