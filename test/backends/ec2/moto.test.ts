/**
 * Set-up, doctor, fleets and garbage collection against moto, an AWS made by others: a second opinion on the wire. It launches nothing and
 * knows no faults, so that it replaces no test on the small cloud. Skipped without moto.
 */
import { CreateSecurityGroupCommand, DescribeSubnetsCommand, EC2Client } from '@aws-sdk/client-ec2'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { createEc2Backend } from '../../../backends/ec2'
import { parseEc2Config } from '../../../backends/ec2/config'
import { createSdkApi } from '../../../backends/ec2/sdk/index'
import { createAccountSetup } from '../../../backends/ec2/setup'
import { awsClients } from '../../support/aws-clients'
import { hasMotoIn, startMoto, type Moto } from '../../support/moto'
import { patiently } from '../harness'
import { patient } from '../../support/patience'

jest.setTimeout(240_000)

const { python } = awsClients()
const hasMoto = python !== undefined && hasMotoIn(python)
const DEPLOYMENT = { name: 'crucible:deployment', value: 'test' }

/**
 * Public parameters of images, simulation of policies, its own name for the role of spot machines, services that it does not have, and route
 * tables of subnets, which its CloudFormation does not associate.
 */
const UNKNOWN_TO_MOTO = [
  /^Parameter \/aws\/service\/deeplearning\/.* not found/,
  /has all needed permissions cannot be checked/,
  /cannot check what the role .* may do in the store/,
  /no service-linked role for spot machines/,
  /^the subnet .* has no outbound route: no default route/,
  /^UnknownError$/,
]

let server: Moto | undefined
let endpoint = ''

;(hasMoto ? describe : describe.skip)('moto', () => {
  beforeAll(async () => {
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })
    delete process.env['AWS_SESSION_TOKEN']
    server = await startMoto(python!)
    endpoint = server.endpoint
  }, 120_000)
  afterAll(() => server?.stop())

  it('understands fleets of both kinds, and shows, finds and ends their machines', async () => {
    const { signal } = patiently()
    const ec2 = new EC2Client({ region: 'us-east-1', endpoint })
    const { Subnets } = await ec2.send(new DescribeSubnetsCommand({}))
    const subnet = Subnets![0]!.SubnetId!
    const { GroupId } = await ec2.send(
      new CreateSecurityGroupCommand({ GroupName: 'g', Description: 'g', VpcId: Subnets![0]!.VpcId! }),
    )
    const api = createSdkApi({ region: 'us-east-1', endpoint })
    const template = {
      name: 'crucible-a',
      image: 'ami-12c6146b',
      profile: 'crucible-machine',
      rootDevice: '/dev/sda1',
      securityGroups: [GroupId!],
      diskGiB: 50,
      userData: '#!/bin/sh\n',
      avoidsReservations: false,
      tagsSpotRequests: false,
      tags: { [DEPLOYMENT.name]: DEPLOYMENT.value },
    }
    await api.machines.createTemplate(template, signal)
    const disk = { device: '/dev/sda1', sizeGiB: 50, speed: { mibPerSecond: 500, iops: 6_000 } }
    for (const capacityType of ['on-demand', 'spot'] as const) {
      const tags = { [DEPLOYMENT.name]: DEPLOYMENT.value, 'crucible:attempt': `a-${capacityType}` }
      const answer = await api.machines.createFleet(
        {
          token: `t-${capacityType}`,
          capacityType,
          templateName: template.name,
          tags,
          pools: [{ type: 'm5.large', subnet, disk }],
        },
        signal,
      )
      expect(answer).toMatchObject({ fleetId: expect.stringMatching(/^fleet-/), errors: [] })
      const [machine] = answer.machines
      expect((await api.machines.byId([machine!.id], signal)).map(({ type }) => type)).toEqual(['m5.large'])
      await api.machines.terminate([machine!.id], signal)
      const [ended] = await api.machines.byId([machine!.id], signal)
      expect(['shutting-down', 'terminated']).toContain(ended?.state)
    }
    const templates = await api.leftovers.templates({ tag: DEPLOYMENT }, signal)
    expect(templates.map(({ name }) => name)).toEqual(['crucible-a'])
    await api.leftovers.deleteTemplate(templates[0]!.id, signal)
    expect(await api.machines.looseVolumes(DEPLOYMENT, signal)).toEqual([])
    ec2.destroy()
  })

  it('is set up, and doctor finds nothing amiss that set-up has made', async () => {
    const setup = createAccountSetup({
      prefix: 'crucible',
      hasOwnNetwork: true,
      region: 'us-east-1',
      endpoint,
    })
    await setup.apply({ signal: AbortSignal.timeout(patient(120_000)), onStep: () => {} })
    const { parts, settings } = await setup.survey(AbortSignal.timeout(patient(60_000)))
    expect(parts.filter(({ state }) => state !== 'there')).toEqual([])
    const read = parseEc2Config({ ...settings, AWS_REGION: 'us-east-1' })
    if (!('config' in read)) throw new Error(JSON.stringify(read))
    const config = { ...read.config, types: ['m5.large'], endpoint }
    const backend = await createEc2Backend(config, {
      clock: Date.now,
      runnerUrl: async () => 'data:,',
      storeUrl: settings['CRUCIBLE_STORE']!,
    })
    const problems = await backend.check({ signal: AbortSignal.timeout(patient(60_000)) })
    const told = problems.map(({ message }) => message)
    // Network, groups, profile, bucket and quotas are in order; of the rest moto knows nothing.
    expect(told.filter((message) => !UNKNOWN_TO_MOTO.some((words) => words.test(message)))).toEqual([])
  })
})
