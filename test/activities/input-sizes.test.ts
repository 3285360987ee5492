import { describe, expect, it } from '@jest/globals'
import { createInputSizes } from '../../activities/plan/input-sizes'
import type { JobSpec } from '../../core/job/job'
import type { DataTransfer, Offer } from '../../core/offer'
import type { BackendAnswer } from '../../core/job/plan'
import { MINUTE_MS } from '../../core/time/time'
import { SPEC } from '../support/spec'

const TRANSFER = { storeRegion: 'us-east-1' } as DataTransfer
const answers = (...offers: Partial<Offer>[]): BackendAnswer[] => [{ offers } as unknown as BackendAnswer]
const FAR = answers({}, { transfer: TRANSFER })
const SOURCES = ['s3://corpus/text/', 'https://example.com/vocab.txt', 'file:///srv/images']
const READING: JobSpec = { ...SPEC, inputs: SOURCES.map((source) => ({ source, path: 'x' })) }

function stage(
  measure = async (): Promise<{ sizeBytes: number; region?: string }> => ({
    sizeBytes: 7,
    region: 'eu-west-1',
  }),
) {
  let nowMs = 1e12
  const asked: string[] = []
  const sizes = createInputSizes({
    measurers: {
      's3:': {
        measure: (source) => {
          asked.push(source)
          return measure()
        },
        serverEnv: ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'],
      },
    },
    monotonicMs: () => nowMs,
  })
  return { sizes, asked, pass: (ms: number) => void (nowMs += ms) }
}

describe('the sizes of inputs', () => {
  it('are read where the scheme has a measurer, once in half an hour', async () => {
    const { sizes, asked, pass } = stage()
    const found = [{ source: 's3://corpus/text/', sizeBytes: 7, region: 'eu-west-1' }]
    expect(await sizes(READING, FAR)).toEqual(found)
    expect(await sizes(READING, FAR)).toEqual(found)
    expect(asked).toEqual(['s3://corpus/text/'])
    pass(30 * MINUTE_MS)
    await sizes(READING, FAR)
    expect(asked).toHaveLength(2)
  })

  it('are not read where no offer moves data between Regions', async () => {
    const { sizes, asked } = stage()
    expect(await sizes(READING, answers({}, {}))).toEqual([])
    expect(asked).toEqual([])
  })

  it.each(['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'])(
    'are not read of a server that the job names with %s',
    async (name) => {
      const { sizes, asked } = stage()
      expect(await sizes({ ...READING, env: { [name]: 'http://store' } }, FAR)).toEqual([])
      expect(asked).toEqual([])
    },
  )

  it('are unknown where they may not be read, and are not asked for again at once', async () => {
    const { sizes, asked } = stage(() => Promise.reject(new Error('AccessDenied')))
    expect(await sizes(READING, FAR)).toEqual([])
    expect(await sizes(READING, FAR)).toEqual([])
    expect(asked).toHaveLength(1)
  })
})
