// Who has signed in.

import { ApiError, basic, forgetCredentials, hasCredentials, keepCredentials, request, whenSignedOut, words } from "./api/client";

export interface Me {
  name: string;
  tags: string[];
}

class Session {
  me = $state.raw<Me | undefined>();
  /** Why the sign-in is shown, if there is a reason. */
  reason = $state("");
  /** Whether what was kept from before a reload is being tried. */
  resuming = $state(hasCredentials());

  constructor() {
    whenSignedOut((reason) => this.signOut(reason));
  }

  get isAdministrator(): boolean {
    return this.me?.tags.includes("administrator") ?? false;
  }

  /** Sees all virtual hosts. */
  get isMonitoring(): boolean {
    return this.isAdministrator || (this.me?.tags.includes("monitoring") ?? false);
  }

  async signIn(name: string, password: string): Promise<void> {
    const authorization = basic(name, password);
    try {
      const me = await request<Me>("/api/whoami", { authorization });
      keepCredentials(authorization);
      this.reason = "";
      this.me = me;
    } catch (error) {
      this.reason =
        error instanceof ApiError && error.status === 401 ? "This name and password are refused."
        : error instanceof ApiError && error.status === 403 ? "This user may not use the management API: it has none of the tags management, policymaker, monitoring and administrator."
        : words(error);
    }
  }

  /** After a reload; waits for a broker that is just starting. */
  async resume(): Promise<void> {
    while (this.resuming && hasCredentials()) {
      try {
        this.me = await request<Me>("/api/whoami");
        break;
      } catch (error) {
        if (error instanceof ApiError && error.status !== 503) {
          this.signOut(words(error));
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    }
    this.resuming = false;
  }

  signOut(reason = ""): void {
    forgetCredentials();
    this.resuming = false;
    this.me = undefined;
    this.reason = reason;
  }
}

export const session = new Session();
