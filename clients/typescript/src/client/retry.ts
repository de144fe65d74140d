import type { DescMethod } from "@bufbuild/protobuf";
import { serviceConfig } from "../gen/service_config.js";

/** How a method is tried again, as a gRPC service config says it. */
export interface RetryPolicy {
  readonly maxAttempts: number;
  /** In milliseconds. */
  readonly initialBackoff: number;
  /** In milliseconds. */
  readonly maxBackoff: number;
  readonly backoffMultiplier: number;
  /** Names of gRPC status codes. */
  readonly retryableStatusCodes: readonly string[];
}

/** The policy of a method in the service config that the schema publishes; undefined: it is tried once. */
export function retryPolicy(method: DescMethod): RetryPolicy | undefined {
  const config = serviceConfig.methodConfig.find(({ name }) =>
    name.some((each) => each.service === method.parent.typeName && each.method === method.name),
  );
  return config && { ...config.retryPolicy, ...backoffs(config.retryPolicy) };
}

function backoffs({ initialBackoff, maxBackoff }: { initialBackoff: string; maxBackoff: string }) {
  return { initialBackoff: 1000 * Number.parseFloat(initialBackoff), maxBackoff: 1000 * Number.parseFloat(maxBackoff) };
}

/**
 * Milliseconds before the next attempt, of which `attempt` is the number (from 1), with the jitter of gRPC's retry design
 * (proposal A6: a fifth more or less).
 */
export function backOff(policy: RetryPolicy, attempt: number): number {
  const pause = Math.min(policy.initialBackoff * policy.backoffMultiplier ** (attempt - 1), policy.maxBackoff);
  return pause * (0.8 + 0.4 * Math.random());
}
