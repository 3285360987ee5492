import { CreateLaunchTemplateCommand, EC2Client } from '@aws-sdk/client-ec2'
import { afterEach, expect, it, jest } from '@jest/globals'
import { createSdkApi } from '../../../../backends/ec2/sdk/index'

afterEach(() => {
  jest.restoreAllMocks()
})

it('a launch template ends its machines when they power off, encrypts disks, and keeps credentials from containers', async () => {
  const sent: unknown[] = []
  jest.spyOn(EC2Client.prototype, 'send').mockImplementation(((command: unknown) => {
    sent.push(command)
    return Promise.resolve({})
  }) as never)
  const spec = {
    name: 'crucible-1',
    image: 'ami-1',
    profile: 'crucible-machine',
    securityGroups: ['sg-1'],
    rootDevice: '/dev/sda1',
    diskGiB: 100,
    userData: '#!/bin/sh',
    tags: {},
    avoidsReservations: false,
    tagsSpotRequests: false,
  }
  await createSdkApi({ region: 'us-east-1' }).machines.createTemplate(spec, new AbortController().signal)
  const [command] = sent as [CreateLaunchTemplateCommand]
  expect(command).toBeInstanceOf(CreateLaunchTemplateCommand)
  expect(command.input.LaunchTemplateData).toMatchObject({
    // A machine that is only stopped keeps its disk, which is billed.
    InstanceInitiatedShutdownBehavior: 'terminate',
    // Policies of many companies refuse machines whose disks are not encrypted.
    BlockDeviceMappings: [{ Ebs: { DeleteOnTermination: true, Encrypted: true } }],
    // With a limit of 2 a container would reach the metadata service, and the credentials of the machine there.
    MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1, HttpEndpoint: 'enabled' },
  })
})
