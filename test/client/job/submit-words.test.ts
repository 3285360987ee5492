import { describe, expect, it } from '@jest/globals'
import { detailsOf, summaryInMarkdown, summaryOf } from '../../../client/job/submit-words'
import { oneLine } from '../../../core/one-line'
import { SPEC } from '../world'

const HOSTILE = 'a\u001b[2J\u202egpj.exe\u2028b'

describe("a job's page in Temporal", () => {
  it('has no control character and no turned text, whatever owner, command and image are called', () => {
    const spec = { ...SPEC, run: `echo ${HOSTILE}\n# \u202e`, image: HOSTILE }
    const input = { jobId: 'job-1', spec, bundle: null, owner: `${HOSTILE}\n# Approved`, submittedAtMs: 0 }
    const details = detailsOf({ ...input, deployment: 'dep-1' })
    for (const text of [details, summaryOf(spec), summaryInMarkdown(spec)]) {
      for (const line of text.split('\n')) expect(line).toBe(oneLine(line))
      expect(text).toContain('gpj.exe')
    }
    expect(details.split('\n').filter((line) => line.startsWith('# '))).toEqual(['# �'])
  })
})
