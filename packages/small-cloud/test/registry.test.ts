/** Registries of the small cloud, as the engine of a machine meets them. */
import { RunInstancesCommand } from '@aws-sdk/client-ec2'
import { afterEach, describe, expect, it } from '@jest/globals'
import { DrivenClock } from '../src'
import type { RegistryQuestion } from '../src/machines/machine'
import type { WorldText } from '../src/world/schema'
import { registriesOf } from './registries'
import { IMAGE, stopClouds, testCloud, UP_MS } from './support'

const OWN = '111122223333.dkr.ecr.us-east-1.amazonaws.com'
const HOUR_MS = 3_600_000

const role = (policies: Record<string, object>): NonNullable<WorldText['roles']>[string] => ({
  policies: policies as never,
})
const allow = (Action: string[], Resource: string) => ({ Statement: [{ Effect: 'Allow', Action, Resource }] })
const WORLD: WorldText = {
  roles: {
    reader: { managed: ['AmazonEC2ContainerRegistryReadOnly'] },
    'of-team': role({
      team: allow(
        ['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
        'arn:aws:ecr:us-east-1:111122223333:repository/team/*',
      ),
    }),
  },
  docker: { images: [`${OWN}/*`, '*/there:1'] },
}

const pull = (image: string, password?: string): RegistryQuestion => ({
  verb: 'pull',
  registry: image.split('/')[0]!,
  image,
  ...(password === undefined ? {} : { login: { username: 'AWS', password } }),
})
const login = (registry: string, password: string): RegistryQuestion => ({
  verb: 'login',
  registry,
  login: { username: 'AWS', password },
})

describe("Amazon's own registry", () => {
  const image = `${OWN}/team/train:1`

  it('gives an image for a token, until the token has expired', async () => {
    const clock = new DrivenClock(0)
    const { ask, tokenFor } = registriesOf({ ...WORLD, durations: { registryToken: '12h' } }, clock)
    const token = tokenFor('reader')
    await clock.advance(12 * HOUR_MS - 1)
    expect(await ask(login(OWN, token))).not.toHaveProperty('refusal')
    expect(await ask(pull(image, token))).toEqual({ pullMs: 0, digest: expect.stringMatching(/^sha256:/) })
    await clock.advance(1)
    for (const question of [pull(image, token), login(OWN, token)])
      expect(await ask(question)).toEqual({ refusal: expect.stringContaining('token has expired') })
  })

  it('wants a token of its region, and none that was made up', async () => {
    const { ask, tokenFor } = registriesOf(WORLD)
    expect(await ask(pull(image))).toEqual({ refusal: expect.stringContaining('no basic auth credentials') })
    for (const token of ['made up', tokenFor('reader', 'eu-west-1')])
      expect(await ask(login(OWN, token))).toEqual({ refusal: expect.stringContaining('400 Bad Request') })
  })

  it('lets anyone with a token read what they may read', async () => {
    const { ask, tokenFor } = registriesOf(WORLD)
    const token = tokenFor('of-team')
    expect(await ask(pull(image, token))).toHaveProperty('digest')
    expect(await ask(pull(`${OWN}/other/train:1`, token))).toEqual({
      refusal: expect.stringMatching(
        /denied: User: .*\/of-team\/i-1 is not authorized to perform: ecr:BatchGetImage on resource: .*repository\/other\/train because no identity-based/,
      ),
    })
    const foreign = image.replace('111122223333', '999999999999')
    expect(await ask(pull(foreign, tokenFor('reader')))).toEqual({
      refusal: expect.stringContaining('no resource-based policy'),
    })
  })
})

describe('any registry', () => {
  afterEach(stopClouds)

  it('is there for machines with a way to the Internet, for which endpoints do not do', async () => {
    const zones = ['us-east-1a', 'us-east-1b', 'us-east-1c']
    const subnets = (['public', 'nat', 'endpoints'] as const).map((egress, i) => ({
      zone: zones[i]!,
      egress,
      isDefault: true,
    }))
    const { clock, clients, machines } = await testCloud({ regions: { 'us-east-1': { zones, subnets } } })
    const answers = []
    for (const AvailabilityZone of zones) {
      const launch = { ImageId: IMAGE, InstanceType: 'g5.xlarge', MinCount: 1, MaxCount: 1 } as const
      const { Instances } = await clients.ec2.send(
        new RunInstancesCommand({ ...launch, Placement: { AvailabilityZone } }),
      )
      await clock.advance(UP_MS)
      const { docker } = machines.get(Instances![0]!.InstanceId!)!.spec
      answers.push(Object.keys(await docker!(pull('open.example.com/there:1'))))
    }
    expect(answers).toEqual([['pullMs', 'digest'], ['pullMs', 'digest'], ['refusal']])
  })

  it('has the images that the world names, and no others', async () => {
    const { ask } = registriesOf(WORLD)
    expect(await ask(pull('open.example.com/there:1'))).toHaveProperty('digest')
    expect(await ask(pull('open.example.com/there:2'))).toEqual({
      refusal: expect.stringContaining('manifest unknown'),
    })
  })

  it('is out of reach, ill or slow as the world has it', async () => {
    const clock = new DrivenClock(0)
    const where = { registry: 'open.example.com' }
    const { ask } = registriesOf(
      {
        faults: [
          { fault: 'registry-down', until: '1m', where },
          { fault: 'registry-down', instead: 'error', from: '1m', until: '2m', where },
          { fault: 'registry-slow', by: '5s', from: '2m', where },
        ],
      },
      clock,
    )
    const question = pull('open.example.com/there:1')
    expect(await ask(pull('other.example.com/there:1'))).toHaveProperty('digest')
    expect(await ask(question)).toEqual({ refusal: expect.stringContaining('connection refused') })
    await clock.advance(60_000)
    expect(await ask(question)).toEqual({ refusal: expect.stringContaining('500 Internal Server Error') })
    await clock.advance(60_000)
    let hasAnswered = false
    const answer = ask(question).finally(() => (hasAnswered = true))
    await clock.advance(4_999)
    expect(hasAnswered).toBe(false)
    await clock.advance(1)
    expect(await answer).toHaveProperty('digest')
  })
})
