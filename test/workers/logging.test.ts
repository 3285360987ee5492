import { Writable } from 'node:stream'
import { describe, expect, it } from '@jest/globals'
import { pino } from 'pino'
import { temporalLogger } from '../../workers/logging'

function logged(level: string, meta: Record<string, unknown>): { level: number; msg: string }[] {
  const lines: string[] = []
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(...chunk.toString().trimEnd().split('\n'))
      done()
    },
  })
  temporalLogger(pino({ level }, stream)).warn('Workflow failed', meta)
  return lines.map((line) => JSON.parse(line) as { level: number; msg: string })
}

const failure = (message: string, type: string): Error => Object.assign(new Error(message), { type })
const JOB = { workflowType: 'job', workflowId: 'job/char-lm-xm8n27', runId: 'x' }

describe('the log of workers', () => {
  it('has one line for a failed job: which one, and why', () => {
    const error = failure('The program ended with exit code 1.\nTraceback ...', 'workload')
    const [line, ...others] = logged('warn', { ...JOB, error })
    expect(others).toEqual([])
    expect(line!.msg).toBe(
      'Job char-lm-xm8n27 failed (workload): The program ended with exit code 1. Traceback ...',
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
