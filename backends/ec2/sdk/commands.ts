import {
  DescribeInstanceInformationCommand,
  GetCommandInvocationCommand,
  ListCommandInvocationsCommand,
  SendCommandCommand,
} from '@aws-sdk/client-ssm'
import { AwsError } from './api'
import type { CommandsApi } from './api-commands'
import type { Clients } from './index'
import { call } from './errors'

/** A shell script, run by the agent as root. */
const DOCUMENT = 'AWS-RunShellScript'
/** Number of listed invocations; only the latest ones matter. */
const INVOCATIONS_SHOWN = 50

export function createCommandsApi({ reading, changing }: Clients): CommandsApi {
  return {
    agent: (machineId, signal) =>
      call(signal, async () => {
        try {
          const { InstanceInformationList } = await reading.ssm.send(
            new DescribeInstanceInformationCommand({
              Filters: [{ Key: 'InstanceIds', Values: [machineId] }],
            }),
            { abortSignal: signal },
          )
          const [information] = InstanceInformationList ?? []
          return information && { isOnline: information.PingStatus === 'Online' }
        } catch (error) {
          // The filter fails for a machine that is not there yet.
          if ((error as { name?: string }).name === 'InvalidInstanceId') return undefined
          throw error
        }
      }),
    send: ({ machineId, comment, lines, deliveryTimeoutMs, runTimeoutMs }, signal) =>
      call(signal, async () => {
        const { Command } = await changing.ssm.send(
          new SendCommandCommand({
            InstanceIds: [machineId],
            DocumentName: DOCUMENT,
            Comment: comment,
            TimeoutSeconds: Math.ceil(deliveryTimeoutMs / 1_000),
            Parameters: { commands: lines, executionTimeout: [String(Math.ceil(runTimeoutMs / 1_000))] },
          }),
          { abortSignal: signal },
        )
        if (Command?.CommandId === undefined)
          throw new AwsError('the answer names no command', { code: 'NoCommandId', reach: 'unanswered' })
        return Command.CommandId
      }),
    invocations: (machineId, signal) =>
      call(signal, async () => {
        const { CommandInvocations } = await reading.ssm.send(
          new ListCommandInvocationsCommand({ InstanceId: machineId, MaxResults: INVOCATIONS_SHOWN }),
          { abortSignal: signal },
        )
        return (CommandInvocations ?? [])
          .map((one) => ({
            commandId: one.CommandId ?? '',
            comment: one.Comment ?? '',
            requestedAtMs: one.RequestedDateTime?.getTime() ?? 0,
            status: String(one.Status ?? 'Pending'),
          }))
          .sort((a, b) => b.requestedAtMs - a.requestedAtMs)
      }),
    result: (commandId, machineId, signal) =>
      call(signal, async () => {
        try {
          const result = await reading.ssm.send(
            new GetCommandInvocationCommand({ CommandId: commandId, InstanceId: machineId }),
            { abortSignal: signal },
          )
          return {
            status: String(result.Status ?? 'Pending'),
            // The documentation writes some of these values with spaces.
            details: (result.StatusDetails ?? '').replace(/\s+/g, ''),
            exitCode: result.ResponseCode ?? -1,
            stdout: result.StandardOutputContent ?? '',
            stderr: result.StandardErrorContent ?? '',
          }
        } catch (error) {
          if ((error as { name?: string }).name === 'InvocationDoesNotExist') return undefined
          throw error
        }
      }),
  }
}
