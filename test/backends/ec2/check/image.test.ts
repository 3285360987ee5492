import { afterEach, describe, expect, it } from '@jest/globals'
import { imageProblems } from '../../../../backends/ec2/check/image'
import { createSdkApi } from '../../../../backends/ec2/sdk'
import { patiently } from '../../harness'
import { DEFAULT_IMAGE, Ec2Harness, type PaperHarness } from '../harness'

let h: PaperHarness | undefined
afterEach(async () => {
  await h?.dispose()
  h = undefined
})

const UBUNTU_22 = 'Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) 20260710'
const at = (day: string): number => Date.parse(day)

describe('the check of the image', () => {
  it.each([
    [
      'half a year before its patches end',
      UBUNTU_22,
      '2026-11-29',
      /^the image .* Ubuntu 22.04, whose patches end on 2027-04-30$/,
    ],
    ['after its patches ended', UBUNTU_22, '2027-06-01', /whose patches ended on 2027-04-30$/],
    [
      'of an older system',
      'amzn2 Amazon Linux 2 base',
      '2026-11-29',
      /Amazon Linux 2, whose patches ended on 2026-06-30$/,
    ],
  ])('warns %s', (_, name, day, words) => {
    const problems = imageProblems({ id: 'ami-1', name }, { setting: 'ami-1', nowMs: at(day) })
    expect(problems).toEqual([
      {
        severity: 'warning',
        message: expect.stringMatching(words),
        remedy: expect.stringContaining('CRUCIBLE_EC2_IMAGE'),
      },
    ])
  })

  it.each([
    ['long before its patches end', UBUNTU_22, 'ami-1', '2026-09-01'],
    ['of a system without a known end', 'our own image 7', 'ami-1', '2026-11-29'],
    ['that is the default', 'Deep Learning Base (Ubuntu 24.04)', DEFAULT_IMAGE, '2026-11-29'],
    ['of Amazon Linux 2023', 'Deep Learning Base (Amazon Linux 2023)', 'ami-1', '2026-11-29'],
  ])('says nothing of an image %s', (_, name, setting, day) => {
    expect(imageProblems({ id: 'ami-1', name }, { setting, nowMs: at(day) })).toEqual([])
  })

  it('tells the deprecation of an image that the setting pins, and of no other', () => {
    const image = { id: 'ami-1', name: 'ours', deprecatedAtMs: at('2026-12-20') }
    const said = (setting: string, day: string) =>
      imageProblems(image, { setting, nowMs: at(day) }).map(({ message }) => message)
    expect(said('ami-1', '2026-11-29')).toEqual(['the image ami-1 will be deprecated on 2026-12-20'])
    expect(said('ami-1', '2027-01-10')).toEqual(['the image ami-1 is deprecated since 2026-12-20'])
    expect(said(DEFAULT_IMAGE, '2027-01-10')).toEqual([])
  })

  it('asks EC2 for the name and the deprecation', async () => {
    const parameter = '/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-ubuntu-22.04/latest/ami-id'
    h = await Ec2Harness.onPaper({ world: { deprecatedImages: [parameter] } })
    const { signal } = patiently()
    const { account, market } = createSdkApi({ region: h.config.region, endpoint: h.config.endpoint })
    const id = await account.parameter(parameter, signal)
    expect(await market.image(id, signal)).toMatchObject({
      name: expect.stringContaining('Ubuntu 22.04'),
      deprecatedAtMs: at('2026-11-02'),
    })
    const backend = await h.reopen({ image: id }, { clock: () => at('2026-12-01') })
    expect((await backend.check(patiently())).map(({ message }) => message)).toEqual([
      'the image of the machines has Ubuntu 22.04, whose patches end on 2027-04-30',
      `the image ${id} is deprecated since 2026-11-02`,
    ])
  })
})
